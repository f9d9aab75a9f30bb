"""The checkpoints of a flow at one moment: where its groups are, and where they would continue on the target."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from heliograph.model import Flow, TopicPartition
    from heliograph.status.windows import Stat


class GroupPartition(NamedTuple):
    """One partition of a group, as of the last step that read its committed offset. Times are seconds since 1970.

    `read_again` is how many records the group would read again if it continued at the checkpoint; None is not known.
    `since` is the time since which the checkpoint is not that of the committed offset; None if it is.
    """

    tp: TopicPartition
    remote_tp: TopicPartition
    committed: int
    translated: int | None  # the offset on the target
    read_again: int | None
    since: float | None
    latency_ms: Stat | None  # from the begin of the step to the acknowledgement of the checkpoint


class GroupStatus(NamedTuple):
    """One group of a flow. `lag_seconds` is how long its checkpoints have been behind; 0 if they are not."""

    group: str
    partitions: tuple[GroupPartition, ...]
    lag_seconds: float | None

    @property
    def read_again(self) -> int | None:
        """The records that the group would read again; None if that of any partition is not known."""
        counts = [each.read_again for each in self.partitions]
        known = [count for count in counts if count is not None]
        return None if len(known) < len(counts) else sum(known)


class CheckpointsSnapshot(NamedTuple):
    """The checkpoints of one flow.

    `name` is that of the flow, `connector` that of the checkpoint connector. `passed_at` is the time of the last step
    after which every checkpoint was that of its group's committed offset; `written_at` that of the newest checkpoint
    that this process has written. None: not yet. `groups` are those of which something is known.
    """

    name: str
    connector: str
    flow: Flow
    at: float
    passed_at: float | None
    written_at: float | None
    written: int
    groups: tuple[GroupStatus, ...]

    @property
    def group_count(self) -> int | None:
        """The number of groups; None until a step has read all of them."""
        return None if self.passed_at is None else len(self.groups)
