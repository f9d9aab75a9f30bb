"""A writer that goes on through every fault: numbered records, acknowledged by all, in order per partition."""

from __future__ import annotations

import random
import threading
import time

from confluent_kafka import Producer

_TICK_S = 0.02


class Writer:
    """Writes to a topic until stopped; what it could not write for sure is an error of the round, not of the copy."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, per_second: int, seed: int) -> None:
        self.written = [0] * partitions
        self.errors: list[str] = []
        self._random = random.Random(f"load-{seed}")
        self._topic = topic
        self._per_tick = max(1, int(per_second * _TICK_S))
        self._producer = Producer(
            {
                "bootstrap.servers": bootstrap,
                "enable.idempotence": True,
                "message.timeout.ms": 0,  # given up by us, never by the client: a gap would be a loss of ours
                "compression.type": self._random.choice(["none", "lz4", "zstd", "gzip", "snappy"]),
                "linger.ms": self._random.choice([5, 20, 100]),
                "delivery.report.only.error": True,
                "log_level": 0,
            }
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="load", daemon=True)
        self._thread.start()

    def stop(self, timeout_s: float = 180) -> None:
        """Write no more, and wait until all is acknowledged."""
        self._stopping.set()
        self._thread.join(timeout_s)
        left = self._producer.flush(timeout_s)
        if left:
            self.errors.append(f"the writer still waits for {left} acknowledgements")

    def _run(self) -> None:
        due = time.monotonic()
        while not self._stopping.is_set():
            for _ in range(self._per_tick):
                self._write(self._random.randrange(len(self.written)))
            self._producer.poll(0)
            due = max(due + _TICK_S, time.monotonic() - 1)  # makes up for a pause, but for no more than a second
            self._stopping.wait(max(0.0, due - time.monotonic()))

    def _write(self, partition: int) -> None:
        value = f"{partition}-{self.written[partition]:09}-{'x' * self._random.randrange(200)}"
        while not self._stopping.is_set():
            try:
                self._producer.produce(
                    self._topic, value.encode(), partition=partition, key=b"k", on_delivery=self._note
                )
            except BufferError:
                self._producer.poll(0.05)
                continue
            self.written[partition] += 1
            return

    def _note(self, error: object, _message: object) -> None:
        if error is not None:
            self.errors.append(str(error))
