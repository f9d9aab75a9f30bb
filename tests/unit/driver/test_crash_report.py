"""Of Spark's many lines one is shown, without secrets."""

from __future__ import annotations

import pytest

from heliograph.driver.spark.spark_errors import spark_error_line


@pytest.mark.parametrize(
    ("text", "reported"),
    [
        (
            "An error occurred while calling x.\n: org.apache.spark.SparkException: No such master.\n\tat x",
            "org.apache.spark.SparkException: No such master.",
        ),
        ("first\nCaused by: the disk\nmore", "Caused by: the disk"),
        (
            "java.lang.IllegalArgumentException: spark.x.password=canary",
            "java.lang.IllegalArgumentException: spark.x.password=[hidden]",
        ),
        ("", "OSError"),
    ],
)
def test_the_line_with_the_reason_is_shown(text: str, reported: str) -> None:
    assert spark_error_line(OSError(text)) == reported
