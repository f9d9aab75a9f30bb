"""Renders the table of keys as a page: `python -m heliograph.config.reference FILE`. A test keeps the page fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from heliograph.config.keys import TABLE
from heliograph.config.overlays import DROPPED_AT_TOP, WORKER_PREFIXES_AT_TOP
from heliograph.config.types import BOOLEAN, Key, Scope

_SECTIONS = (
    ("Top of the file", Scope.FILE),
    ("All connectors", Scope.CONNECTOR),
    ("Source connector", Scope.SOURCE),
    ("Checkpoint connector", Scope.CHECKPOINT),
    ("Heartbeat connector", Scope.HEARTBEAT),
    ("Worker", Scope.WORKER),
    ("Connection and security of every Kafka client", Scope.CLIENT),
    ("Consumer of the source", Scope.CONSUMER),
    ("Producer of the target", Scope.PRODUCER),
    ("Administrators of both clusters", Scope.ADMIN),
)
_HEAD = """\
# Configuration reference

Generated from the table in `src/heliograph/config` by `make docs`; do not edit.

Keys are MirrorMaker 2's, with its defaults; **own** marks keys or defaults that are Heliograph's
([why](../decisions/0005-defaults-that-differ.md)). Where a key may stand in a dedicated-mode file:

| keys | at the top | behind | wins |
|---|---|---|---|
| connectors' | yes | `A->B.` | `A->B.` |
| worker's | only {worker} | the target, `B.` | the top |
| security | yes | `A.`, `A.consumer.`, `A->B.source.consumer.` and so on | the longest |
| consumer's, producer's, admin's | no | `A.consumer.`, `A->B.source.consumer.` and so on | the longest |

Connector keys that Java MM2 drops at the top of the file, and Heliograph with it: {dropped}.

*Since* names the version of Kafka that brought a key, where that is known. *Ignored* keys are accepted, and the reason
is told where one is set; *refused* keys are an error unless they have the default. `heliograph validate FILE` says what
is wrong with a file, `heliograph explain FILE KEY` where a value comes from.
"""
_COLUMNS = "\n## {title}\n\n| key | type | default | importance | since | meaning |\n|---|---|---|---|---|---|\n"


def render() -> str:
    """The whole page."""
    worker = ", ".join(f"`{prefix}*`" for prefix in WORKER_PREFIXES_AT_TOP)
    dropped = ", ".join(f"`{name}`" for name in sorted(DROPPED_AT_TOP))
    parts = [_HEAD.format(worker=worker, dropped=dropped)]
    shown: set[str] = set()
    for title, scope in _SECTIONS:
        rows = [row for row in TABLE.values() if row.name not in shown and _belongs(row, scope)]
        shown.update(row.name for row in rows)
        if rows:
            parts.append(_COLUMNS.format(title=title))
            parts += [_line(row) for row in sorted(rows, key=_is_inert)]
    return "".join(parts)


def shown_value(row: Key[object], value: object) -> str:
    """A typed value as it would be written in a file."""
    if isinstance(value, tuple):
        return ", ".join(value)
    if row.type is BOOLEAN:
        return str(value).lower()
    return "" if value is None else str(value)


def _is_inert(row: Key[object]) -> bool:
    return row.support.kind != "full" or row.replaced_by is not None


def _belongs(row: Key[object], scope: Scope) -> bool:
    return scope in row.scope if scope is Scope.CONNECTOR else bool(row.scope & scope)


def _line(row: Key[object]) -> str:
    default = shown_value(row, row.default)
    cells = (
        f"`{row.name}`",
        row.type.name.lower(),
        f"`{default}`" if default else "",
        row.importance.value,
        row.since,
        _meaning(row),
    )
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |\n"


def _meaning(row: Key[object]) -> str:
    parts = ["**own**"] if row.ours else []
    parts.append(row.doc)
    if row.mm2_default is not None:
        parts.append(f"MM2: `{shown_value(row, row.mm2_default)}`.")
    if row.check is not None:
        parts.append(f"Must be {row.check.words}.")
    if row.replaced_by is not None:
        parts.append(f"Read as `{row.replaced_by}`.")
    if row.support.kind == "ignored":
        parts.append(f"*Ignored*: {row.support.reason}.")
    if row.support.kind == "rejected":
        parts.append(f"*Refused*: {row.support.reason}")
    return " ".join(parts)


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
