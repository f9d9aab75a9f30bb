"""One sentence for each reason why Spark did not start, or lost a task: its own messages have dozens of lines."""

from __future__ import annotations

import re
from typing import Final

from heliograph.config.resolve.redaction import shown_error
from heliograph.executor.shipped_code import REMEDIES

_REASON_SIGNS: Final = ("Python worker exited", "Caused by", "SparkException", "IllegalArgumentException")
_MOST_CHARACTERS: Final = 300
_KNOWN: Final = (
    (
        r"Python in worker has different version: (?P<theirs>[\d.]+) than that in driver: (?P<ours>[\d.]+)",
        (
            "The executors run Python {theirs}, the driver Python {ours}; both need the same minor version. Run"
            " `heliograph pack` and start with --conf spark.archives=ARCHIVE, or install Python {ours} on every"
            " executor and name it by spark.pyspark.python."
        ),
    ),
    (
        r'Cannot run program "(?P<python>[^"]+)"',
        "The executors have no Python at '{python}': set spark.pyspark.python to the path of theirs. " + REMEDIES,
    ),
    (
        r"InvalidClassException|serialVersionUID|incompatible with this Spark|Unknown message type",
        (
            "The cluster runs another version of Spark than this driver, which has {spark}: install the cluster's"
            " version of pyspark beside Heliograph, or Spark {spark} on the cluster."
        ),
    ),
    (
        r"All masters are unresponsive",
        (
            "The master of the Spark cluster does not answer: it is down, it runs another version of Spark than this"
            " driver's {spark}, or its spark.authenticate.secret differs."
        ),
    ),
)


def spark_error_line(error: Exception, log_text: str = "") -> str:
    """Return a sentence for a reason that we know, or the line of Spark's message that names it, with secrets hidden.

    `log_text` is what Spark has logged about it: an exception may only say that Spark has stopped.
    """
    text = str(error)
    for pattern, sentence in _KNOWN:
        found = re.search(pattern, text) or re.search(pattern, log_text)
        if found is not None:
            return sentence.format(**found.groupdict(), spark=_spark_version())
    lines = [line.strip(" :") for line in text.splitlines() if line.strip()]
    reasons = [line for line in lines if any(sign in line for sign in _REASON_SIGNS)]
    return shown_error((reasons or lines or [type(error).__name__])[0])[:_MOST_CHARACTERS]


def _spark_version() -> str:
    from pyspark import __version__  # noqa: PLC0415  (half a second that other commands save)

    return str(__version__)
