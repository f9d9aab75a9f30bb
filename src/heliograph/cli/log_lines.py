"""Log lines that nobody else can write: a message stays one entry, whatever is in it.

Keys, values and names come from outside. With a line break in one, what follows would look like an entry of its own;
with an escape it would move the cursor of the terminal.
"""

from __future__ import annotations

import logging
import re

_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class PlainLines(logging.Formatter):
    """Escapes control characters; lines behind the first, as those of a stack trace, are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        text = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), super().format(record))
        return text.replace("\n", "\n    ")
