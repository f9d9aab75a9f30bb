"""Renders routes and refusals as a page: `python -m heliograph.api.reference FILE`. A test keeps the page fresh."""

from __future__ import annotations

import sys
from pathlib import Path

from heliograph.api.errors import refusals
from heliograph.api.routes import ROUTES

_HEAD = """\
# REST reference

Generated from the tables in `src/heliograph/api` by `make docs`; do not edit.

The API is Kafka Connect 4.3.1's: same paths, status codes, bodies and errors
([what differs](../decisions/0010-rest-on-this-machine.md)). Bodies are JSON. Ask any worker of a group; what is not
marked *local* is answered by the one that leads. *needs* is what a rule must give a caller, where there are
[rules](../guides/security-rest.md#rules).

| method | path | answers | needs | meaning |
|---|---|---|---|---|
"""
_ERRORS = """
`HEAD` answers as `GET` without the body, `OPTIONS` names the methods of a path. In `heliograph run`, whose file defines
the connectors, whatever changes them is refused.

## Errors

Every error is `{"error_code": STATUS, "message": TEXT}`.

| status | message | when |
|---|---|---|
"""


def render() -> str:
    """The whole page."""
    lines = [_HEAD]
    for row in ROUTES:
        doc = f"{row.doc} (*local*)" if row.is_local else row.doc
        lines.append(_line(row.method, f"`{row.path}`", row.answers, row.access.value, doc))
    lines.append(_ERRORS)
    lines += [_line(str(row.status), " ".join(row.text.split()), row.when) for row in refusals()]
    return "".join(lines)


def _line(*cells: str) -> str:
    return "| " + " | ".join(cell.replace("{{", "{").replace("}}", "}").replace("|", "\\|") for cell in cells) + " |\n"


if __name__ == "__main__":
    Path(sys.argv[1]).write_text(render(), encoding="utf-8")
