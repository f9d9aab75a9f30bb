"""Applies a changed file to the running process: on SIGHUP, and with `--watch` within seconds of the change.

The content is compared, not the time or the inode: Kubernetes changes a mounted ConfigMap by swapping a link to its
folder. A change is applied when two looks in a row have found the same content, since an editor may still be writing.

A refused file is tried again now and then, because what it names may not be there yet: Kubernetes updates a ConfigMap
and the secrets beside it at different times. Its sentences are logged once, and the end of the refusal.
"""

from __future__ import annotations

import hashlib
import logging
import time
from typing import TYPE_CHECKING

from heliograph.cli.inputs import log_findings, read_config_file
from heliograph.errors import ConfigError, HeliographError

if TYPE_CHECKING:
    import threading
    from collections.abc import Callable
    from pathlib import Path

    from heliograph.config.effective.file_changes import FileChanges
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.driver.loops.mirror_process import MirrorProcess


log = logging.getLogger("heliograph")

_LOOK_INTERVAL_S = 1.0
_TRY_AGAIN_S = 10.0


class ConfigReload:
    """Looks after one file; `read` returns its configuration, or raises ConfigError with everything wrong in it.

    `applied` is the digest of the file from before the process read it: Spark takes seconds to start, and a change
    meanwhile must not be missed.
    """

    def __init__(
        self,
        file: Path,
        read: Callable[[], MirrorMakerConfig],
        process: MirrorProcess,
        requested: threading.Event,
        applied: bytes | None,
        *,
        is_watched: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._file, self._read, self._process = file, read, process
        self._requested, self._is_watched, self._clock = requested, is_watched, clock
        self._applied = self._seen = applied
        self._look_at = 0.0
        self._try_at: float | None = None
        self._sentences: list[str] = []

    def poll(self) -> None:
        """Apply the file if that was requested, or if it has changed and is watched; to be called often."""
        if self._requested.is_set():
            self._requested.clear()
            self._sentences = []  # a request is always answered
            self._applied = self._seen = file_digest(self._file)
            self._apply(is_requested=True)
        elif self._is_watched and self._clock() >= self._look_at:
            self._look_at = self._clock() + _LOOK_INTERVAL_S
            self._look()

    def _look(self) -> None:
        digest = file_digest(self._file)
        is_settled, self._seen = digest == self._seen, digest
        if not is_settled:
            return
        if digest != self._applied:
            self._applied = digest
            self._apply()
        elif self._try_at is not None and self._clock() >= self._try_at:
            self._apply()

    def _apply(self, *, is_requested: bool = False) -> None:
        before = self._process.config
        try:
            changes = self._process.apply(self._read())
        except HeliographError as error:
            self._try_at = self._clock() + _TRY_AGAIN_S
            self._log_refusal(error)
            return
        if self._try_at is not None:
            log.info("%s: it is valid again", self._file)
        self._try_at, self._sentences = None, []
        self._log_changes(changes, is_requested=is_requested)
        now = self._process.config
        log_findings(
            self._file,
            [each for each in now.warnings if each not in before.warnings],
            [each for each in now.notes if each not in before.notes],
        )

    def _log_refusal(self, error: HeliographError) -> None:
        found = error.diagnostics if isinstance(error, ConfigError) else (error,)
        sentences = [str(each) for each in found]
        if sentences == self._sentences:
            return
        self._sentences = sentences
        for sentence in sentences:
            log.error("%s: %s", self._file, sentence)
        log.error("%s: the changed file is not applied; the configuration before it stays in effect", self._file)

    def _log_changes(self, changes: FileChanges, *, is_requested: bool) -> None:
        if not changes:
            if is_requested:
                log.info("%s: read again; nothing has changed", self._file)
            return
        for key in changes.keys:
            log.info("%s: %s", self._file, key)
        for flow, effect in changes.flows.items():
            log.info("%s: %s", flow, effect.value, extra={"flow": str(flow)})
        for flow in changes.added:
            log.info("%s: was added and is started", flow, extra={"flow": str(flow)})
        for flow in changes.removed:
            log.info("%s: was removed and is stopped", flow, extra={"flow": str(flow)})
        if changes.unapplied:
            log.warning(
                "%s: not applied, since only a new process reads it: %s", self._file, ", ".join(changes.unapplied)
            )


def file_digest(file: Path) -> bytes | None:
    """Return a hash of a file's content; None if it cannot be read."""
    try:
        return hashlib.sha256(read_config_file(file).encode()).digest()
    except ConfigError:
        return None
