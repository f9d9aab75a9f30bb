"""What is told of an error that nobody foresaw: its kind and words, and its stack trace for the log.

Its words were written by others and may hold anything, so what looks like a secret in them is hidden.
"""

from __future__ import annotations

import traceback

from heliograph.config.redaction import redact_text

_TELLING = ("Python worker exited", "Caused by", "SparkException", "IllegalArgumentException")


def unexpected(error: Exception) -> str:
    """One line about it."""
    return redact_text(f"unexpected {type(error).__name__}: {error}")


def what_spark_says(error: Exception) -> str:
    """The one line of Spark's many that tells the reason."""
    lines = [line.strip(" :") for line in str(error).splitlines() if line.strip()]
    told = [line for line in lines if any(sign in line for sign in _TELLING)]
    return redact_text((told or lines or [type(error).__name__])[0][:300])


def trace_of(error: Exception) -> str:
    """Its stack trace; values of variables are not in it."""
    return redact_text("".join(traceback.format_exception(error)))
