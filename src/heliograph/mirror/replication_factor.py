"""How many replicas a topic can have: MM2's default factors fail on a small cluster, here they bend.

What the user wrote does not bend; where the cluster cannot hold it, the sentence names the key, the factor and the
number of brokers.
"""

from __future__ import annotations

from heliograph.model import counted


def possible_factor(wanted: int, broker_count: int, *, is_explicit: bool) -> int:
    """The factor to create a topic with."""
    return wanted if is_explicit else min(wanted, broker_count)


def bent_sentence(alias: str, what: str, wanted: int, broker_count: int) -> str:
    """Says that a default factor was bent for a kind of topic."""
    return (
        f"{alias}: {counted(broker_count, 'broker')} cannot hold {what} with the default replication factor {wanted};"
        f" using {broker_count}"
    )


def too_large_sentence(alias: str, key: str, wanted: int, broker_count: int) -> str:
    """Says that a factor the user wrote is more than the cluster can hold."""
    has = counted(broker_count, "broker")
    return f"{key} is {wanted}, but the cluster '{alias}' has {has}; lower {key} or add brokers"
