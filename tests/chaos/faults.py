"""The faults, and lanes that bring them in a seeded order: brokers of either side, the copier, and the network at once.

A lane brings one fault at a time and heals it before the next, so a cluster never lacks two brokers. What comes, and
for how long, is the seed's; where exactly it meets the copy is the machine's.
"""

from __future__ import annotations

import random
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import psutil
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient

from heliograph.embedded.kafka_cluster import EmbeddedCluster
from heliograph.errors import EmbeddedError
from tests.chaos.gates import Gates
from tests.support.runs.running import Running

_STARTS = 3
_END_TIMEOUT_S = 90.0
_STOP_TIMEOUT_S = 180.0


@dataclass(frozen=True)
class Fault:
    """What happens after a pause, to which of the candidates, and for how long."""

    after_s: float
    what: str
    which: int
    lasts_s: float


def plan(seed: int, lane: str, kinds: Sequence[str], pause_s: tuple[float, float], most_s: float) -> Iterator[Fault]:
    """Faults without end: every kind once, in a random order, then again."""
    rng = random.Random(f"{lane}-{seed}")
    while True:
        for what in rng.sample(kinds, len(kinds)):
            yield Fault(rng.uniform(*pause_s), what, rng.randrange(3), rng.uniform(0.3, most_s))


class Side:
    """One cluster, whose brokers go and come back, and the doors in front of them."""

    kinds = ("kill -9", "SIGSTOP", "restart")
    network_kinds = ("cut", "refuse", "silence")

    def __init__(self, cluster: EmbeddedCluster, gates: Gates, far_bootstrap: str) -> None:
        self.cluster = cluster
        self.gates = gates
        self.far_bootstrap = far_bootstrap

    def disturb(self, fault: Fault, over: threading.Event) -> None:
        """Take a broker away for a while, until it is in sync again."""
        broker = self.cluster.brokers[fault.which]
        process = self.cluster.broker_process(broker.node_id)
        if fault.what == "SIGSTOP":
            process.suspend()
            over.wait(fault.lasts_s)
            process.resume()
        else:
            if fault.what == "restart":
                process.terminate()
            else:
                process.kill()
            try:
                process.wait(_END_TIMEOUT_S)
            except psutil.TimeoutExpired:
                process.kill()
                process.wait(_END_TIMEOUT_S)
            over.wait(fault.lasts_s)
            self._start(broker.node_id)
        self.wait_until_in_sync()

    def _start(self, node_id: int) -> None:
        for attempt in range(1, _STARTS + 1):
            try:
                self.cluster = self.cluster.start_broker(node_id)
            except EmbeddedError as error:
                print(f"try {attempt}: {error}")
                if attempt == _STARTS:
                    raise
            else:
                return

    def disturb_network(self, fault: Fault, over: threading.Event) -> None:
        """Break the copier's connections; others have a way of their own."""
        if fault.what == "cut":
            self.gates.cut()
            return
        if fault.what == "refuse":
            self.gates.shut()
        else:
            self.gates.silence()
        over.wait(fault.lasts_s)
        self.gates.heal()

    def wait_until_in_sync(self, timeout_s: float = 120) -> None:
        """Wait until every replica of every partition is in sync, or that long."""
        admin = AdminClient({"bootstrap.servers": self.cluster.bootstrap, "log_level": 0})
        deadline = time.monotonic() + timeout_s
        while time.monotonic() < deadline:
            try:
                topics = admin.list_topics(timeout=5).topics.values()
            except KafkaException:
                continue
            if all(len(p.isrs) == len(p.replicas) for topic in topics for p in topic.partitions.values()):
                return
            time.sleep(0.3)


class Copier:
    """`heliograph run` as a supervisor keeps it: started again whenever it is gone."""

    kinds = ("worker kill -9", "worker SIGSTOP", "process kill -9", "process SIGTERM", "orphan")

    def __init__(self, file: Path) -> None:
        self.ended_by_itself: list[str] = []
        self.left_behind: list[str] = []
        self._file = file
        self._running = Running(file)

    def keep(self) -> None:
        """Start it again where it has ended without being asked to."""
        code = self._running.process.poll()
        if code is not None:
            words = [line for line in self._running.output().splitlines() if line.startswith("error")]
            self.ended_by_itself.append(f"exit code {code}: {words[-1] if words else 'without a word'}")
            self._running = Running(self._file)

    def pause(self, over: threading.Event, seconds: float) -> None:
        """Wait, and look after it meanwhile."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline and not over.wait(0.2):
            self.keep()

    def disturb(self, fault: Fault, over: threading.Event) -> None:
        """Kill or stop a worker or the whole process; it is started again."""
        if fault.what == "process kill -9":
            self._kill()
        elif fault.what == "process SIGTERM":
            self.stop()
        else:
            worker = self._some_worker(fault.which, over)
            if worker is None:
                return
            self._disturb_worker(worker, fault, over)
        if self._running.process.poll() is not None:
            self._running = Running(self._file)

    def _some_worker(self, which: int, over: threading.Event) -> psutil.Process | None:
        while not over.is_set():
            self.keep()
            workers = self._running.python_workers()
            if workers:
                return workers[which % len(workers)]
            over.wait(0.2)
        return None

    def _disturb_worker(self, worker: psutil.Process, fault: Fault, over: threading.Event) -> None:
        if fault.what == "worker kill -9":
            worker.kill()
            return
        worker.suspend()
        if fault.what == "orphan":  # it sleeps through the end of its driver, and wakes up beside its successor
            self._kill(but=worker)
            self._running = Running(self._file)
            over.wait(8 + fault.lasts_s)
        else:
            over.wait(fault.lasts_s * 2)
        try:
            worker.resume()
            if fault.what == "orphan":
                worker.wait(_END_TIMEOUT_S)
        except psutil.TimeoutExpired:
            self.left_behind.append(f"an orphaned worker went on for {_END_TIMEOUT_S:.0f} s")
        except psutil.NoSuchProcess:
            pass

    def _kill(self, but: psutil.Process | None = None) -> None:
        process = self._running.process
        try:
            children = psutil.Process(process.pid).children(recursive=True)
        except psutil.NoSuchProcess:
            children = []
        process.kill()
        process.wait()
        _gone, alive = psutil.wait_procs([child for child in children if child != but], timeout=_END_TIMEOUT_S)
        self.left_behind += [f"kill -9 left {each} behind" for each in alive]

    def stop(self) -> None:
        """SIGTERM and wait."""
        process = self._running.process
        process.send_signal(signal.SIGTERM)
        try:
            code = process.wait(_STOP_TIMEOUT_S)
        except subprocess.TimeoutExpired:
            self.left_behind.append(f"it did not end within {_STOP_TIMEOUT_S:.0f} s of a SIGTERM")
            self._kill()
            return
        if code:
            self.ended_by_itself.append(f"exit code {code} after a SIGTERM")

    def close(self) -> None:
        """End it, whatever state it is in."""
        if self._running.process.poll() is None:
            self._kill()


class Lane:
    """A thread that brings one plan's faults until the round is over; what it began, it heals."""

    def __init__(
        self,
        name: str,
        faults: Iterator[Fault],
        disturb: Callable[[Fault, threading.Event], None],
        over: threading.Event,
        pause: Callable[[threading.Event, float], object],
    ) -> None:
        self.done: list[str] = []
        self.error: BaseException | None = None
        self._name = name
        self._faults = faults
        self._disturb = disturb
        self._over = over
        self._pause = pause
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def join(self) -> None:
        """Wait for its end; raises what went wrong in it."""
        self._thread.join()
        if self.error is not None:
            raise self.error

    def _run(self) -> None:
        try:
            for fault in self._faults:
                self._pause(self._over, fault.after_s)
                if self._over.is_set():
                    return
                self._disturb(fault, self._over)
                self.done.append(f"{self._name}: {fault.what}")
        except BaseException as error:  # noqa: BLE001  (handed to the one who waits)
            self.error = error
