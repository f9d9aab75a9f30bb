"""A running flow of a file as its operator sees it: REST, the probes, Connect's status, and the log."""

from __future__ import annotations

import json
import logging
import re
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, cast
from urllib.parse import quote

from heliograph.cli.config_reload import ConfigReload, file_digest
from heliograph.cli.inputs import MachineLookup
from heliograph.cli.output import LogLines
from heliograph.config.effective.mirror_config import MirrorMakerConfig
from heliograph.config.validate.dedicated_file import load
from heliograph.connect.contract.log_levels import LogLevels
from heliograph.connect.runtime.file_herder import FileHerder
from heliograph.driver.loops.mirror_process import MirrorProcess
from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.kafka.request_options import LATEST, READ_UNCOMMITTED
from heliograph.model import TopicPartition
from tests.interop.rest_story import ask
from tests.support.clusters.clients import admin_of, write
from tests.support.connect.fake_herder import FakeHerder
from tests.support.connect.rest_worker import rest_worker
from tests.support.runs.copying import PATIENCE_S, wait_for
from tests.support.runs.thread_engine import thread_engine

NOTICED_S = 10.0
SLACK_S = 30.0  # of a busy machine; the seconds that it took are printed
_POLL_S = 0.5  # as `run` looks at its flows


class LogLine(NamedTuple):
    """A line of the log."""

    at: float
    level: str
    text: str


class LogBook(logging.Handler):
    """The log of a process, as `run` writes it without a terminal."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.lines: list[LogLine] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(LogLine(time.monotonic(), record.levelname, record.getMessage()))


class Day:
    """One running flow, as REST shows it, and the log of its process."""

    def __init__(
        self,
        url: str,
        process: MirrorProcess,
        source: EmbeddedCluster,
        target: EmbeddedCluster,
        topic: str,
        book: LogBook,
    ) -> None:
        (flow,) = process.config.flows
        self.url, self.process, self.alias, self.name = url, process, flow.source, str(flow)
        self.source, self.target, self.topic = source, target, topic
        self.flow = f"/heliograph/v1/flows/{quote(self.name, safe='')}"
        self._book = book
        self._mark = 0

    def becomes(self, *lines: str) -> None:
        """Change the last lines of its file while it runs."""
        self.process.apply(load(day_file(self.source, self.target, self.alias, self.topic, *lines), MachineLookup()))

    # --- what it shows ------------------------------------------------------------------------------------------------

    def get(self, path: str) -> tuple[int, Any]:
        status, _headers, body = ask(self.url, "GET", path)
        return status, json.loads(body)

    def partition(self, number: int = 0) -> dict[str, Any]:
        rows = self.get(f"{self.flow}/partitions?topic={self.topic}")[1]["partitions"]
        return dict(rows[number]) if number < len(rows) else {"state": None}

    def state(self, number: int = 0) -> str | None:
        found: str | None = self.partition(number)["state"]
        return found

    def ready(self) -> tuple[int, str]:
        status, body = self.get("/health/ready")
        return status, "; ".join(each["reason"] for each in body["reasons"])

    def tasks(self, kind: str) -> list[dict[str, Any]]:
        name = quote(f"{self.name}.Mirror{kind}Connector", safe="")
        return list(self.get(f"/connectors/{name}/status")[1]["tasks"])

    def trace(self, kind: str = "Source") -> str:
        return "; ".join(task.get("trace") or "" for task in self.tasks(kind))

    @property
    def traces_are_empty(self) -> bool:
        """Whether all tasks that copy run, and have nothing to say."""
        return {(task["state"], task.get("trace")) for task in self.tasks("Source")} == {("RUNNING", None)}

    def is_only(self, kind: str, state: str) -> bool:
        """Whether the one task of this connector has this state."""
        return [task["state"] for task in self.tasks(kind)] == [state]

    def is_any(self, kind: str, state: str) -> bool:
        """Whether a task of this connector has this state."""
        return state in [task["state"] for task in self.tasks(kind)]

    def whole(self) -> dict[str, Any]:
        """The sums."""
        return dict(self.get(self.flow)[1])

    def lag_is(self, position: int | None, lag: int | None, number: int = 0) -> bool:
        """Whether a partition shows this position and this lag."""
        row = self.partition(number)
        return (row.get("position"), row.get("lag_records")) == (position, lag)

    def sums_fit(self) -> bool:
        """Whether the sums of the flow are those of its partitions: they may be of two moments."""
        whole = self.get(self.flow)[1]
        rows = self.get(f"{self.flow}/partitions")[1]["partitions"]
        states = {state: count for state, count in whole["partitions"].items() if count and state != "total"}
        lags = [row["lag_records"] for row in rows]
        known = [lag for lag in lags if lag is not None]
        ready = self.ready()
        return (
            states == dict(Counter(row["state"] for row in rows))
            and whole["partitions"]["total"] == len(rows)
            and whole["lag_records"] == (None if None in lags else sum(known))
            and whole["lag_records_at_least"] == sum(known)
            and whole["partitions_with_unknown_lag"] == lags.count(None)
            and whole["ready"] == (ready[0] == 200)
            and "; ".join(whole["unready_reasons"]) == ready[1]
        )

    def log(self, pattern: str = "") -> list[str]:
        """The lines since the last fault began."""
        lines = [f"{each.level} {each.text}" for each in self._book.lines[self._mark :]]
        return [line for line in lines if re.search(pattern, line)]

    # --- a fault ------------------------------------------------------------------------------------------------------

    def begin_fault(self) -> float:
        """From now on the log is about a fault; return the time."""
        self._mark = len(self._book.lines)
        return time.monotonic()

    def await_all(self, what: str, since: float, within_s: float, **conditions: Callable[[], object]) -> None:
        """Wait until each of the conditions was met once, and print after how long."""
        met: dict[str, float] = {}
        while missing := conditions.keys() - met.keys():
            for name in missing:
                if conditions[name]():
                    met[name] = time.monotonic() - since
            late = time.monotonic() - since > within_s and sorted(conditions.keys() - met.keys())
            assert not late, f"{what}: {late} not within {within_s} s; {self.describe()}"
            time.sleep(0.05)
        print(f"{what}: " + ", ".join(f"{name} {met[name]:.1f} s" for name in conditions))

    def describe(self) -> str:
        return json.dumps([self.get(self.flow)[1], self.partition(), self.ready(), self.trace(), self.log()], indent=1)

    def noticed(self, fault: str, since: float, **conditions: Callable[[], object]) -> None:
        """A fault is noticed in time, everywhere."""
        self.await_all(f"{fault} noticed", since, NOTICED_S + SLACK_S, **conditions)
        wait_for(self.sums_fit)

    def cleared(self, fault: str, ended: str, *partitions: int) -> None:
        """All is well again, by itself, and a line of the log says that it has `ended`."""
        self.await_all(
            f"{fault} cleared",
            time.monotonic(),
            PATIENCE_S,
            state=lambda: self.is_caught_up(*partitions),
            ready=lambda: self.ready() == (200, ""),
            trace=lambda: self.traces_are_empty,
            log=lambda: self.log(ended),
        )
        wait_for(self.sums_fit)

    # --- outside ------------------------------------------------------------------------------------------------------

    def write(self, count: int, size: int = 10, partition: int = 0) -> None:
        write(self.source, self.topic, ({"value": b"x" * size, "partition": partition} for _ in range(count)))

    def end(self, cluster: EmbeddedCluster, topic: str, partition: int = 0, isolation: int = READ_UNCOMMITTED) -> int:
        admin = admin_of(cluster)
        (end,) = admin.list_offsets([TopicPartition(topic, partition)], LATEST, isolation).values()
        admin.close()
        return end

    def outside_lag(self, remote: str, number: int = 0) -> int:
        """The difference that a client measures of logs without transactions."""
        return self.end(self.source, self.topic, number) - self.end(self.target, remote, number)

    def is_caught_up(self, *partitions: int) -> bool:
        """Whether these partitions say so of the ends that a client measures."""
        return all(self._is_at_end(each) for each in partitions or (0, 1))

    def _is_at_end(self, number: int) -> bool:
        row = self.partition(number)
        if row["state"] != "caught_up" or row["lag_records"] != 0:
            return False
        return bool(row["position"] == row["log_end"] == self.end(self.source, self.topic, number))

    def wait_until_caught_up(self, *partitions: int) -> None:
        wait_for(lambda: self.is_caught_up(*partitions))
        wait_for(lambda: self.ready() == (200, ""))


@contextmanager
def day(
    source: EmbeddedCluster,
    target: EmbeddedCluster,
    alias: str,
    topic: str,
    *lines: str,
    watched: Path | None = None,
) -> Iterator[Day]:
    """A process that runs one flow of a file, to which `lines` are added; the last line of a key counts."""
    with day_of(day_file(source, target, alias, topic, *lines), source, target, topic, watched) as running:
        yield running


def day_file(source: EmbeddedCluster, target: EmbeddedCluster, alias: str, topic: str, *lines: str) -> str:
    text = (
        f"clusters={alias}, target",
        f"{alias}.bootstrap.servers={source.bootstrap}",
        f"target.bootstrap.servers={target.bootstrap}",
        f"{alias}->target.enabled=true",
        f"{alias}->target.topics={topic}",
        "emit.checkpoints.interval.seconds=2",
        "heliograph.restart.backoff.max.ms=1000",
        *lines,
    )
    return "\n".join(text)


@contextmanager
def day_of(
    text: str, source: EmbeddedCluster, target: EmbeddedCluster, topic: str, watched: Path | None = None
) -> Iterator[Day]:
    """A process that runs the one flow of a file; with `watched`, where the file is, as `run --watch` does."""

    def read() -> MirrorMakerConfig:
        return load(text if watched is None else watched.read_text(), MachineLookup())

    if watched is not None:
        watched.write_text(text)
    process = MirrorProcess(read(), thread_engine())
    herder = FileHerder(process, LogLevels(), lambda: "an id")
    reload = None
    if watched is not None:
        reload = ConfigReload(watched, read, process, threading.Event(), file_digest(watched), is_watched=True)
    with looked_after(process, reload) as book:
        process.start()
        try:
            with rest_worker(cast("FakeHerder", herder), read_only=True) as worker:
                yield Day(worker.url, process, source, target, topic, book)
        finally:
            process.stop()
            process.control.stop()
            assert process.is_over


@contextmanager
def looked_after(process: MirrorProcess, reload: ConfigReload | None) -> Iterator[LogBook]:
    """The loop of `run` in a thread; yields the log of the process, with the lines about its flows."""
    book, lines, is_over = LogBook(), LogLines(), threading.Event()
    logger = logging.getLogger("heliograph")
    level = logger.level
    logger.setLevel(logging.INFO)
    logger.addHandler(book)

    def look() -> None:
        while not is_over.wait(_POLL_S):
            lines.show([flow.status for flow in process.flows.values()])
            if reload is not None:
                reload.poll()
                process.look_after()

    thread = threading.Thread(target=look, daemon=True)
    thread.start()
    try:
        yield book
    finally:
        is_over.set()
        thread.join()
        logger.removeHandler(book)
        logger.setLevel(level)
