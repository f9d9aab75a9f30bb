"""Reads the losses of a flow from its target, for `heliograph losses`."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from heliograph.driver.clusters.cluster_clients import make_admin
from heliograph.driver.losses.loss_log import read_losses
from heliograph.mirror.topics.internal_topics import losses_topic
from heliograph.status.losses import NewestLosses

if TYPE_CHECKING:
    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.model import Flow
    from heliograph.status.losses import Loss

_MOST_LISTED = 10_000


class RecordedLosses(NamedTuple):
    """The newest losses of a flow, the newest first, and the number of all."""

    newest: tuple[Loss, ...]
    total: int


def recorded_losses(config: MirrorConfig, flow: Flow) -> RecordedLosses:
    """Return the losses of a flow; raises ClusterError if the target is unavailable or does not let us read them."""
    newest, total = NewestLosses(_MOST_LISTED), 0
    admin = make_admin(config, flow.target, flow)
    try:
        for loss in read_losses(admin, losses_topic(config.settings(flow)).name, flow):
            total += newest.add(loss)
    finally:
        admin.close()
    return RecordedLosses(newest.newest_first, total)
