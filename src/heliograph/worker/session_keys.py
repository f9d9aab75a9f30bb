"""The key with which workers sign what they pass on to the leader, in Connect's own place: the config topic.

Only a worker whose REST knows its callers needs one; for any other nothing is written. Who leads makes a key where
there is none, and a new one when `inter.worker.key.ttl.ms` is over. Whoever may read the config topic may sign: keep it
to the workers, as Connect asks for too.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING

from heliograph.config import worker_keys

if TYPE_CHECKING:
    from heliograph.config.worker_file import WorkerConfig
    from heliograph.worker.connect_stores import ConfigStore

_KEY_BYTES = 32


class SessionKeys:
    """Keeps the group's key fresh; used by who leads."""

    def __init__(self, configs: ConfigStore, worker: WorkerConfig) -> None:
        self._configs = configs
        self._is_needed = worker.rest.knows_callers
        self._life_ms = worker.settings[worker_keys.INTER_WORKER_KEY_TTL_MS]

    def keep_fresh(self) -> None:
        """Write a key where there is none, or none that is young enough."""
        if not self._is_needed:
            return
        now_ms = int(time.time() * 1000)
        newest = next(iter(self._configs.session_keys), None)
        if newest is None or not now_ms - self._life_ms < newest.created_ms <= now_ms + self._life_ms:
            self._configs.put_session_key(secrets.token_bytes(_KEY_BYTES), now_ms)
