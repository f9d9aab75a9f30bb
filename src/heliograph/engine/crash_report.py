"""What is told of an error that nobody foresaw: its kind and words, and its stack trace for the log.

Its words were written by others and may hold anything, so what looks like a secret in them is hidden.
"""

from __future__ import annotations

import traceback

from heliograph.config.redaction import redact_text


def unexpected(error: Exception) -> str:
    """One line about it."""
    return redact_text(f"unexpected {type(error).__name__}: {error}")


def trace_of(error: Exception) -> str:
    """Its stack trace; values of variables are not in it."""
    return redact_text("".join(traceback.format_exception(error)))
