"""Asks Spark's driver JVM about its memory, garbage collection and threads, through py4j, at intervals.

One thread asks, and only that thread waits if the JVM does not answer; readers get the last sample, or None if it is
too old. py4j gives each thread a connection of its own, so Spark's own requests wait for none of these.
"""

from __future__ import annotations

import logging
import threading
import time
from typing import TYPE_CHECKING, Any

from heliograph.config.resolve.redaction import unexpected
from heliograph.status.process_snapshot import JvmSnapshot

if TYPE_CHECKING:
    from collections.abc import Callable


log = logging.getLogger(__name__)

_INTERVAL_S = 10.0
_KNOWN_FOR_S = 30.0
_STOP_S = 1.0


class JvmSamples:
    """The newest sample of the JVM of a Spark context; `ask` returns one, and may raise or wait for long."""

    def __init__(
        self,
        ask: Callable[[], JvmSnapshot],
        interval_s: float = _INTERVAL_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._ask = ask
        self._interval_s = interval_s
        self._clock = clock
        self._sample: tuple[float, JvmSnapshot] | None = None
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="jvm-samples", daemon=True)
        self._thread.start()

    @property
    def latest(self) -> JvmSnapshot | None:
        """The newest sample; None if the JVM has not answered for some time."""
        sample = self._sample
        return sample[1] if sample is not None and self._clock() - sample[0] <= _KNOWN_FOR_S else None

    def stop(self) -> None:
        """Ask nothing more; a request under way is waited for shortly, so that Spark does not end beneath it."""
        self._stopping.set()
        self._thread.join(_STOP_S)
        self._sample = None

    def _run(self) -> None:
        while not self._stopping.is_set():
            try:
                self._sample = self._clock(), self._ask()
            except Exception as error:  # noqa: BLE001  (py4j raises many types; without a sample the JVM is unknown)
                log.debug("The JVM of Spark does not answer: %s", unexpected(error))
            self._stopping.wait(self._interval_s)


def ask_jvm(context: Any) -> JvmSnapshot:
    """Ask the JVM of a Spark context; waits for as long as it does not answer."""
    beans = context._jvm.java.lang.management.ManagementFactory  # noqa: SLF001  (PySpark has no public access to it)
    memory = beans.getMemoryMXBean()
    collectors = [(bean.getCollectionTime(), bean.getCollectionCount()) for bean in beans.getGarbageCollectorMXBeans()]
    return JvmSnapshot(
        heap_bytes=int(memory.getHeapMemoryUsage().getUsed()),
        other_bytes=int(memory.getNonHeapMemoryUsage().getUsed()),
        gc_seconds=sum(max(0, ms) for ms, _count in collectors) / 1000,  # -1: the collector does not count
        gc_count=sum(max(0, count) for _ms, count in collectors),
        threads=int(beans.getThreadMXBean().getThreadCount()),
    )
