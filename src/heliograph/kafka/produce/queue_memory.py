"""Frees the shared memory of batches that cannot be sent for now, so that other partitions can use it."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from heliograph.kafka.net.buffers import BufferPool
    from heliograph.kafka.produce.target_partition import ProduceListener, TargetPartition
    from heliograph.model import TopicPartition


class QueueMemory:
    """Moves queued batches out of the shared memory, or has the listener discard them."""

    def __init__(self, pool: BufferPool, listener: ProduceListener) -> None:
        self.parking: TopicPartition | None = None  # while the listener is asked to discard its unsent batches
        self._pool = pool
        self._listener = listener

    def park(self, partition: TargetPartition) -> None:
        """Free the memory of a partition that is stuck for an unknown time: unsent batches are read again later."""
        self.parking = partition.tp
        self._listener.on_stuck(partition.tp)
        self.parking = None
        self._copy_queue(partition)

    def keep(self, partition: TargetPartition) -> None:
        """Keep the queue of a partition whose pause will end, if the memory for that suffices; else park it."""
        is_copied = all(each.buffer is None or each.buffer.is_parked for each in partition.queue)
        if is_copied or self._pool.has_room_to_park:
            self._copy_queue(partition)
        else:
            self.park(partition)

    def _copy_queue(self, partition: TargetPartition) -> None:
        for outgoing in partition.queue:
            if outgoing.buffer is not None and not outgoing.buffer.is_parked:
                parked = self._pool.park(outgoing.view)
                outgoing.view = parked.view
                outgoing.buffer.release()
                outgoing.buffer = parked
