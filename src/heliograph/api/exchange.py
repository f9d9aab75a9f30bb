"""A call and its answer, free of any web framework, so that a handler is a plain function of one to the other.

JSON is written as Connect writes it: no blanks, members in the order of its classes, UTF-8 not escaped.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from heliograph.api.plugin_catalogue import PluginCatalogue
    from heliograph.worker.connect_types import Herder
    from heliograph.worker.log_levels import LogLevels

JSON_TYPE = "application/json"
TEXT_TYPE = "text/plain"


class Worker(NamedTuple):
    """What the handlers may use of a worker."""

    herder: Herder
    plugins: PluginCatalogue
    log_levels: LogLevels


class Call(NamedTuple):
    """One request: the parts of its path, its query and its body."""

    worker: Worker
    path: Mapping[str, str] = {}
    query: Mapping[str, Sequence[str]] = {}
    body: bytes = b""

    @property
    def herder(self) -> Herder:
        """The worker's herder."""
        return self.worker.herder

    def flag(self, name: str, *, default: bool = False) -> bool:
        """A query parameter as Java reads a Boolean: `true` in any case, everything else is false."""
        given = self.query.get(name)
        return default if not given else given[0].lower() == "true"


class Answer(NamedTuple):
    """One response; `location` is a path of this worker."""

    status: int
    body: bytes = b""
    content_type: str = JSON_TYPE
    location: str | None = None


def json_answer(payload: object, status: int = 200, location: str | None = None) -> Answer:
    """An answer with a JSON body."""
    text = json.dumps(payload, ensure_ascii=False, separators=(",", ":"))
    return Answer(status, text.encode(), location=location)
