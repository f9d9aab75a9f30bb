"""`/connectors/{c}/offsets`: progress read, overwritten and forgotten (KIP-875)."""

from __future__ import annotations

from typing import TYPE_CHECKING

from heliograph.api import bodies
from heliograph.api.exchange import Answer, json_answer

if TYPE_CHECKING:
    from heliograph.api.exchange import Call


def get_offsets(call: Call) -> Answer:
    """The committed progress."""
    found = call.herder.offsets(call.path["connector"])
    return json_answer({"offsets": [{"partition": partition, "offset": offset} for partition, offset in found]})


def alter_offsets(call: Call) -> Answer:
    """Overwrite progress of some partitions."""
    call.herder.alter_offsets(call.path["connector"], bodies.offsets(call.body))
    return json_answer({"message": "The offsets for this connector have been altered successfully"})


def reset_offsets(call: Call) -> Answer:
    """Forget all progress."""
    call.herder.alter_offsets(call.path["connector"], None)
    return json_answer({"message": "The offsets for this connector have been reset successfully"})
