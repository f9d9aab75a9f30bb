"""What is told of an error that nobody foresaw: its kind and words, and its stack trace for the log.

Its words were written by others and may hold anything, so what is known to be a secret is hidden in them, and what
looks like one.
"""

from __future__ import annotations

import traceback

from heliograph.config.known_secrets import hide_known
from heliograph.config.redaction import redact_text

_TELLING = ("Python worker exited", "Caused by", "SparkException", "IllegalArgumentException")


def unexpected(error: Exception) -> str:
    """One line about it."""
    return _shown(f"unexpected {type(error).__name__}: {error}")


def what_spark_says(error: Exception) -> str:
    """The one line of Spark's many that tells the reason."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if any(sign in line for sign in _TELLING)]
    return _shown((told or lines or [type(error).__name__])[0])[:300]


def trace_of(error: Exception) -> str:
    """Its stack trace; values of variables are not in it."""
    return _shown("".join(traceback.format_exception(error)))


def _shown(text: str) -> str:
    return hide_known(redact_text(text))  # in this order: a password may be a word by which others are recognised
