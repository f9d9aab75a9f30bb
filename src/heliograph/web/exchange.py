"""Requests and responses without a web framework, so that a handler is a plain function from `Call` to `RestResponse`.

JSON is written as Connect writes it: no blanks, members in the order of its classes, UTF-8 not escaped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Mapping, Sequence

    from heliograph.connect.contract.herder import Herder
    from heliograph.connect.contract.log_levels import LogLevels
    from heliograph.status.process_snapshot import ProcessSnapshot


JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"


class Worker(NamedTuple):
    """The parts of a worker that handlers use; `viewer` is the caller if it sees only a part of the connectors."""

    herder: Herder
    plugins: PluginCatalogue
    log_levels: LogLevels
    metrics: MetricRenderer
    viewer: Hashable = None


class Call(NamedTuple):
    """One request: the parts of its path, its query and its body."""

    worker: Worker
    path: Mapping[str, str] = {}
    query: Mapping[str, Sequence[str]] = {}
    body: bytes = b""
    headers: Mapping[str, str] = {}

    @property
    def herder(self) -> Herder:
        """The worker's herder."""
        return self.worker.herder

    def flag(self, name: str, *, default: bool = False) -> bool:
        """Return a query parameter as Java parses a Boolean: `true` in any case, everything else is false."""
        given = self.query.get(name)
        return default if not given else given[0].lower() == "true"


class RestResponse(NamedTuple):
    """One response; `location` is a path of this worker, `encoding` how the body is compressed.

    With `read_within_s` a client that has not read a large body in that time is disconnected.
    """

    status: int
    body: bytes = b""
    content_type: str = JSON_TYPE
    location: str | None = None
    encoding: str = ""
    read_within_s: float | None = None


def json_answer(payload: object, status: int = 200, location: str | None = None) -> RestResponse:
    """Return a response with a JSON body."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return RestResponse(status, text.encode(), location=location)


class MetricRenderer(Protocol):
    """Renders the page of metrics."""

    def page(
        self, process: Callable[[], ProcessSnapshot], viewer: Hashable, headers: Mapping[str, str]
    ) -> RestResponse:
        """Return the page for a viewer, in the format and the compression that the headers of a request accept."""


class PluginCatalogue(Protocol):
    """The plugins of a worker; a plugin is named by its class."""

    def connector_classes(self) -> Sequence[str]:
        """Return the full names of all connector classes."""

    def resolve(self, name: str) -> str | None:
        """Return the full name of a class, given by it or by one of Connect's aliases; None if there is none."""

    def definitions(self, plugin: str) -> list[dict[str, Any]]:
        """Return the keys of a plugin, each with the members of Connect's ConfigKeyInfo."""

    def validate(self, plugin: str, config: Mapping[str, str | None]) -> dict[str, Any]:
        """Validate a config; return the members of Connect's ConfigInfos, which contain the errors."""
