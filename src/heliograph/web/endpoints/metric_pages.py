"""The pages of `/metrics`: which format a scraper gets, and one rendered page for all that ask within a second.

Every Prometheus server scrapes by itself, and so may anybody who is let in: a page is rendered at most once a second
for each format and each caller with limited permissions, and the others that ask meanwhile wait for it. Only a few
pages are kept.

The `Accept` header is compared with the formats that exist; nothing of its text is passed on or kept.
"""

from __future__ import annotations

import gzip
import re
import threading
import time
from concurrent.futures import Future
from typing import TYPE_CHECKING

from prometheus_client import ProcessCollector

from heliograph.config.secrets.known_secrets import hide_known
from heliograph.metrics.page import MetricOptions, Page, choose_format, render
from heliograph.web.exchange import RestResponse

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping

    from heliograph.status.process_snapshot import ProcessSnapshot
    from heliograph.web.exchange import Call


_SHARED_S = 1.0
_READ_WITHIN_S = 10.0  # so that many slow readers hold few pages; Prometheus waits no longer
_MOST_PAGES = 8
_LEAST_COMPRESSED_BYTES = 1_400  # what fits into one packet anyway
_COMPRESSION = 1  # the numbers of a page compress almost as well as with more effort
_LONGEST_HEADER = 2_048
_REFUSED = re.compile(r"q\s*=\s*0(?:\.0*)?")


def metrics(call: Call) -> RestResponse:
    """Return the page of the connectors that the caller may see."""
    return call.worker.metrics.page(call.herder.process, call.worker.viewer, call.headers)


class MetricPages:
    """Renders pages, by options that are asked for each time; safe to call from several threads."""

    def __init__(
        self,
        options: Callable[[], MetricOptions],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._options = options
        self._clock = clock
        self._lock = threading.Lock()
        self._pages: dict[Hashable, _Shared] = {}
        self._own_process = ProcessCollector(registry=None)

    def page(
        self, process: Callable[[], ProcessSnapshot], viewer: Hashable, headers: Mapping[str, str]
    ) -> RestResponse:
        """Return the page for a viewer, in the format and the compression that the headers of a request accept."""
        rendered = self._rendered(process, viewer, choose_format(headers.get("accept", "")))
        answer = RestResponse(200, rendered.page.body, rendered.page.content_type, read_within_s=_READ_WITHIN_S)
        if accepts_gzip(headers.get("accept-encoding", "")) and len(answer.body) >= _LEAST_COMPRESSED_BYTES:
            return answer._replace(body=rendered.compressed(), encoding="gzip")
        return answer

    def _rendered(self, process: Callable[[], ProcessSnapshot], viewer: Hashable, content_type: str) -> _Rendered:
        key = viewer, content_type
        with self._lock:
            now = self._clock()
            self._pages = {each: shared for each, shared in self._pages.items() if shared.is_fresh(now)}
            shared = self._pages.get(key)
            is_ours = shared is None
            if shared is None:
                while len(self._pages) >= _MOST_PAGES:
                    del self._pages[next(iter(self._pages))]
                shared = self._pages[key] = _Shared()
        if is_ours:
            try:
                own = self._own_process.collect()
                rendered = _Rendered(render(process(), content_type, self._options(), hide_known, own))
            except BaseException as error:
                shared.fail(error, self._clock())
                raise
            shared.finish(rendered, self._clock())
        return shared.future.result()


class _Rendered:
    """A page, and its compressed form once somebody wants that."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self._lock = threading.Lock()
        self._compressed = b""

    def compressed(self) -> bytes:
        """Return the compressed body."""
        with self._lock:
            if not self._compressed:
                self._compressed = gzip.compress(self.page.body, _COMPRESSION, mtime=0)
            return self._compressed


class _Shared:
    """A page that one thread renders and others wait for."""

    def __init__(self) -> None:
        self.future: Future[_Rendered] = Future()
        self._finished_at: float | None = None
        self._has_failed = False

    def finish(self, rendered: _Rendered, now: float) -> None:
        """Give the page to all that wait."""
        self._finished_at = now
        self.future.set_result(rendered)

    def fail(self, error: BaseException, now: float) -> None:
        """Give the error to all that wait, and to no others."""
        self._finished_at, self._has_failed = now, True
        self.future.set_exception(error)

    def is_fresh(self, now: float) -> bool:
        """Return whether further requests get this page."""
        if self._finished_at is None:
            return True
        return not self._has_failed and now - self._finished_at < _SHARED_S


def accepts_gzip(accept_encoding: str) -> bool:
    """Return whether a client takes a compressed body."""
    if len(accept_encoding) > _LONGEST_HEADER:
        return False
    for part in accept_encoding.lower().split(","):
        coding, _semicolon, weight = (each.strip() for each in part.partition(";"))
        if coding == "gzip":
            return _REFUSED.fullmatch(weight) is None
    return False
