"""Writes the generated reference pages: `python docs/reference_pages.py`; tests compare them with the tables."""

from __future__ import annotations

from pathlib import Path

from heliograph.config.effective.key_origins import shown_value
from heliograph.config.keys import TABLE
from heliograph.config.keys.table import Key, Scope
from heliograph.config.resolve.overlays import DROPPED_AT_TOP, WORKER_PREFIXES_AT_TOP
from heliograph.web.endpoints.routes import ROUTES
from heliograph.web.error_responses import all_refusals

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
_CONFIGURATION_HEAD = """\
# Configuration reference

Generated from the table in `src/heliograph/config/keys` by `make docs`; do not edit.

Keys are MirrorMaker 2's, with its defaults; **own** marks keys or defaults that are Heliograph's
([why](../decisions/0005-defaults-that-differ.md)). Places of keys in a dedicated-mode file:

| keys | at the top | with the prefix | precedence |
|---|---|---|---|
| connectors' | yes | `A->B.` | `A->B.` |
| worker's | only {worker} | of the target, `B.` | the top |
| security | yes | `A.`, `A.consumer.`, `A->B.source.consumer.` and so on | the longest prefix |
| consumer's, producer's, admin's | no | `A.consumer.`, `A->B.source.consumer.` and so on | the longest prefix |

Connector keys that Java MM2, and so Heliograph, ignores at the top of the file: {dropped}.

*Since* is the version of Kafka that introduced a key, if known. *Ignored* keys are accepted without effect, and the
reason is logged; *refused* keys are an error unless they have the default value. `heliograph validate FILE` reports the
mistakes of a file, `heliograph explain FILE KEY` the origin of a value.
"""
_COLUMNS = "\n## {title}\n\n| key | type | default | importance | since | meaning |\n|---|---|---|---|---|---|\n"


def configuration_page() -> str:
    """Return the whole page."""
    worker = ", ".join(f"`{prefix}*`" for prefix in WORKER_PREFIXES_AT_TOP)
    dropped = ", ".join(f"`{name}`" for name in sorted(DROPPED_AT_TOP))
    parts = [_CONFIGURATION_HEAD.format(worker=worker, dropped=dropped)]
    shown: set[str] = set()
    for title, scope in _SECTIONS:
        rows = [row for row in TABLE.values() if row.name not in shown and _belongs(row, scope)]
        shown.update(row.name for row in rows)
        if rows:
            parts.append(_COLUMNS.format(title=title))
            parts += [_key_line(row) for row in sorted(rows, key=_is_inert)]
    return "".join(parts)


def _is_inert(row: Key[object]) -> bool:
    return row.support.kind != "full" or row.replaced_by is not None


def _belongs(row: Key[object], scope: Scope) -> bool:
    return scope in row.scope if scope is Scope.CONNECTOR else bool(row.scope & scope)


def _key_line(row: Key[object]) -> str:
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
        parts.append(f"Must be {row.check.phrase}.")
    if row.replaced_by is not None:
        parts.append(f"Read as `{row.replaced_by}`.")
    if row.support.kind == "ignored":
        parts.append(f"*Ignored*: {row.support.reason}.")
    if row.support.kind == "rejected":
        parts.append(f"*Refused*: {row.support.reason}")
    return " ".join(parts)


_REST_HEAD = """\
# REST reference

Generated from the tables in `src/heliograph/web` by `make docs`; do not edit.

The API is Kafka Connect 4.3.1's: same paths, status codes, bodies and errors
([differences](../decisions/0010-rest-on-this-machine.md)). Bodies are JSON. Call any worker of a group; the leader
answers everything that is not marked *local*. *needs* is what a rule must grant a caller if there are
[rules](../guides/security-rest.md#rules).

| method | path | answers | needs | meaning |
|---|---|---|---|---|
"""
_ERRORS = """
`HEAD` responds as `GET` without the body, `OPTIONS` returns the methods of a path. In `heliograph run` the file defines
the connectors, and requests that change them are refused.

## Errors

Every error is `{"error_code": STATUS, "message": TEXT}`.

| status | message | when |
|---|---|---|
"""


def rest_page() -> str:
    """Return the whole page."""
    lines = [_REST_HEAD]
    for row in ROUTES:
        doc = f"{row.doc} (*local*)" if row.is_local else row.doc
        lines.append(_table_line(row.method, f"`{row.path}`", row.answers, row.access.value, doc))
    lines.append(_ERRORS)
    lines += [_table_line(str(row.status), " ".join(row.text.split()), row.when) for row in all_refusals()]
    return "".join(lines)


def _table_line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("{{", "{").replace("}}", "}").replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    folder = Path(__file__).parent / "reference"
    (folder / "configuration.md").write_text(configuration_page(), encoding="utf-8")
    (folder / "rest.md").write_text(rest_page(), encoding="utf-8")
