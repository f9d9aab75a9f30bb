"""What a connector's config takes from the worker's machine: files and variables, by placeholders or by path.

A caller who may change some connectors could otherwise name another one's key store, or send another one's password to
a server of his own. So where rules hold, whatever a config takes must be named in a rule. When in doubt it counts:
every value is looked through for what reads like a path.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from heliograph.config.placeholders import Resolver

_PATH = re.compile(r"""(?:^|[\s"'=,;:])(?:file:(?://(?:localhost)?)?)?(/(?!/)[^\s"',;]*)""")
_PLACEHOLDER = re.compile(r"\$\{[^}]*\}")
_FILE_KEYS = (".location", ".file", ".path", ".dir")


class Taken(NamedTuple):
    """A path or `env:NAME`, and the key that takes it."""

    key: str
    source: str


def taken_by(config: Mapping[str, str | None], resolver: Resolver) -> Iterator[Taken]:
    """Everything a config takes from the machine."""
    for key, value in config.items():
        text = (value or "").strip()
        yield from (Taken(key, source) for source in resolver.sources(text))
        if key.endswith(_FILE_KEYS):  # also where a placeholder holds the path: nobody knows what it will hold
            yield from [Taken(key, text)] if text else []
        else:
            yield from (Taken(key, path) for path in _PATH.findall(_PLACEHOLDER.sub("_", text)))
