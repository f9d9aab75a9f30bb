"""Makes log records safe to show: known secrets are hidden, and a record stays one entry, as text or as JSON.

Keys, values and names come from outside. A line break in one would start what looks like another entry, and an escape
sequence would control the terminal.
"""

from __future__ import annotations

import json
import logging
import re
import traceback
from datetime import UTC, datetime
from typing import Any

from heliograph.config.resolve.redaction import redact_text
from heliograph.config.secrets.known_secrets import PUBLIC_RECORD, hide_known

FIELDS = ("flow", "task", "topic", "partition")
"""The attributes of a log record that say what it is about; log calls set them by `extra`."""


class SecretFilter(logging.Filter):
    """A filter of handlers: those of loggers do not see the records of their children."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Replace the record's texts; no record is dropped."""
        message = _message(record)
        record.msg, record.args = message if getattr(record, PUBLIC_RECORD, False) else hide_known(message), ()
        if record.exc_info and record.exc_info[0] is not None:
            trace = "".join(traceback.format_exception(*record.exc_info)).rstrip("\n")
            record.exc_text = hide_known(redact_text(trace))  # a formatter takes this text for the trace
        if record.stack_info:
            record.stack_info = hide_known(record.stack_info)
        if not getattr(record, PUBLIC_RECORD, False):
            for name in FIELDS:
                value = getattr(record, name, None)
                if isinstance(value, str):
                    setattr(record, name, hide_known(value))
        return True


def _message(record: logging.LogRecord) -> str:
    """The message. Arguments that do not fit raise nothing here: logging would report them with their values."""
    try:
        return record.getMessage()
    except Exception:  # noqa: BLE001  (whatever an argument of some library raises when it is shown)
        return f"{record.msg} (its arguments cannot be shown)"


def hide_secrets_in_logs(logger: logging.Logger) -> None:
    """Filter what the handlers of a logger write, and what Python writes for loggers without a handler."""
    for handler in (*logger.handlers, logging.lastResort):
        if handler is not None and not any(isinstance(each, SecretFilter) for each in handler.filters):
            handler.addFilter(SecretFilter())


_CONTROLS = re.compile(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u2028\u2029]")


class PlainLines(logging.Formatter):
    """Escapes control characters; lines after the first, as those of a stack trace, are indented."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        text = _CONTROLS.sub(lambda found: found[0].encode("unicode_escape").decode(), super().format(record))
        return text.replace("\n", "\n    ")


class JsonLines(logging.Formatter):
    """One JSON object in one line: letters beyond ASCII and control characters are escaped."""

    def format(self, record: logging.LogRecord) -> str:
        """One entry."""
        time = datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")
        entry: dict[str, Any] = {
            "time": time,
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        entry |= {name: getattr(record, name) for name in FIELDS if getattr(record, name, None) is not None}
        if record.exc_text or record.exc_info:
            entry["exception"] = record.exc_text or self.formatException(record.exc_info or (None, None, None))
        if record.stack_info:
            entry["stack"] = record.stack_info
        # A delete character is the one control character that JSON leaves as it is.
        return json.dumps(entry, default=str).replace("\x7f", "\\u007f")
