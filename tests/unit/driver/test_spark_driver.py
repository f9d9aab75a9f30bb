"""A Spark application that its cluster stops, or that does not start: started again, or one sentence."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from heliograph.driver.spark import spark_session
from heliograph.driver.spark.spark_errors import spark_error_line
from heliograph.driver.spark.spark_session import SparkDriver, SparkSettings
from heliograph.errors import EngineError
from tests.support.runs.copying import wait_for


class Context:
    """An application."""

    defaultParallelism = 4  # noqa: N815

    def __init__(self) -> None:
        self.is_stopped = False
        self._jsc = SimpleNamespace(sc=lambda: SimpleNamespace(isStopped=lambda: self.is_stopped))

    def getConf(self) -> dict[str, str]:  # noqa: N802
        return {}

    def stop(self) -> None:
        self.is_stopped = True


class Spark:
    """A JVM whose applications are the test's."""

    def __init__(self) -> None:
        self.has_had_context = self.has_ended = False
        self.starts: list[Context | Exception] = []
        self.started: list[Context] = []
        self.began = threading.Semaphore(0)

    def new_log_text(self) -> str:
        return ""

    def start_context(self, _settings: SparkSettings, _jvm: Any) -> Context:
        self.began.release()
        found = self.starts.pop(0) if self.starts else Context()
        if isinstance(found, Exception):
            raise found
        self.has_had_context = True
        self.started.append(found)
        return found


@pytest.fixture
def spark(monkeypatch: pytest.MonkeyPatch) -> Spark:
    made = Spark()
    monkeypatch.setattr(spark_session, "start_jvm", lambda _settings: made)
    monkeypatch.setattr(spark_session, "start_context", made.start_context)
    monkeypatch.setattr(spark_session, "_WATCH_INTERVAL_S", 0.01)
    monkeypatch.setattr(spark_session, "_FIRST_PAUSE_S", 0.01)
    return made


@pytest.fixture
def driver(spark: Spark, tmp_path: Path) -> Iterator[SparkDriver]:  # noqa: ARG001
    made = SparkDriver(SparkSettings("local[4]", folder=tmp_path / "spark"), starts=False)
    yield made
    made.stop()


def test_an_application_that_spark_has_stopped_is_started_again(spark: Spark, driver: SparkDriver) -> None:
    driver.start()
    first: Any = driver.context()
    spark.starts = [OSError("the master does not answer"), Context()]
    first.is_stopped = True
    wait_for(lambda: len(spark.started) == 2)
    wait_for(lambda: driver.current_context() is spark.started[1])
    assert (driver.context(), driver.error) == (spark.started[1], None)


def test_an_application_that_cannot_be_started_again_is_an_error_at_last(
    spark: Spark, driver: SparkDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session, "_MOST_ATTEMPTS", 3)
    driver.start()
    first: Any = driver.context()
    spark.starts = [OSError("no master") for _ in range(3)]
    first.is_stopped = True
    wait_for(lambda: driver.error is not None)
    assert "Spark could not be started: no master" in str(driver.error)


def test_applications_that_do_not_last_are_an_error_at_last(
    spark: Spark, driver: SparkDriver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spark_session, "_MOST_ATTEMPTS", 3)
    monkeypatch.setattr(Context, "stop", lambda _context: None)
    spark.starts = [Context() for _ in range(9)]
    for context in spark.starts:
        context.is_stopped = True  # type: ignore[union-attr]
    driver.start()
    wait_for(lambda: driver.error is not None)
    assert "Spark has stopped 3 applications within a minute each" in str(driver.error)
    assert len(spark.started) == 3


def test_a_first_start_that_fails_is_not_tried_again(spark: Spark, driver: SparkDriver) -> None:
    spark.starts = [OSError("no such master")]
    driver.start()
    with pytest.raises(EngineError, match="Spark could not be started: no such master"):
        driver.context()


def test_a_jvm_that_has_ended_is_an_error(spark: Spark, driver: SparkDriver) -> None:
    driver.start()
    driver.context()
    assert driver.error is None
    spark.has_ended = True
    assert "Spark's JVM has ended" in str(driver.error)


def test_a_driver_is_stopped_and_started_again(spark: Spark, driver: SparkDriver) -> None:
    assert driver.current_context() is None
    driver.start()
    driver.start()
    assert driver.context() is spark.started[0]
    driver.stop()
    assert (spark.started[0].is_stopped, driver.current_context(), driver.error) == (True, None, None)
    with pytest.raises(EngineError, match=r"Spark is stopped\."):
        driver.context()
    driver.start()
    assert driver.context() is spark.started[1]
    assert len(spark.started) == 2


def test_a_caller_that_gives_up_does_not_wait_for_spark(spark: Spark, driver: SparkDriver) -> None:
    driver.start()
    first: Any = driver.context()
    spark.starts = [OSError("no master") for _ in range(1000)]
    first.is_stopped = True
    wait_for(lambda: driver.current_context() is None)
    assert driver.context(lambda: True) is None


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "[PYTHON_VERSION_MISMATCH] Python in worker has different version: 3.9 than that in driver: 3.11, PySpark",
            ("executors run Python 3.9, the driver Python 3.11", "heliograph pack", "install Python 3.11"),
        ),
        (
            'Caused by: java.io.IOException: Cannot run program "/opt/py/bin/python": error=2, No such file',
            ("no Python at '/opt/py/bin/python'", "spark.pyspark.python", "heliograph pack"),
        ),
        (
            "java.io.InvalidClassException: RpcEndpointVerifier; local class incompatible: classdesc serialVersionUID",
            ("another version of Spark than this driver",),
        ),
    ],
)
def test_mismatches_of_executors_are_one_sentence_each(text: str, words: tuple[str, ...]) -> None:
    for line in (spark_error_line(OSError(f"Job aborted\n\n{text}\n\tat x")), spark_error_line(OSError("x"), text)):
        assert all(each in line for each in words), line
        assert "\n" not in line
