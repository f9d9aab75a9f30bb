"""Finds cycles over all flows of a file, which the policy of a single flow cannot see.

`Topology.has_been_on` follows a topic back through the flows that made it, each by its own policy: a copy that `A->B`
renamed is recognised by `B->A` whatever the latter's policy is. `warn_about_cycles` finds cycles in which every flow
keeps the topic's name, so that originals and copies look alike and records would be copied for ever.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.mirror.policy.filters import NameFilter, topic_filter
from heliograph.mirror.policy.plugins import is_custom
from heliograph.mirror.policy.replication_policy import ReplicationPolicy, make_policy

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from heliograph.config.resolve.settings import Settings
    from heliograph.model import Flow


_PROBE = "heliograph-probe"  # stands for a topic that no rule names
_PLAIN = re.compile(r"(?:[a-zA-Z0-9._-]|\\\.)+")
_LITERAL_START = re.compile(r"(?:(?:[a-zA-Z0-9_-]|\\\.)(?![*?{+]))*")


@dataclass(frozen=True, slots=True)
class Topology:
    """The policies of all enabled flows."""

    policies: Mapping[Flow, ReplicationPolicy]

    @classmethod
    def of(cls, flows: Mapping[Flow, Settings]) -> Topology:
        """Return the topology of a file's flows."""
        return cls({flow: make_policy(settings) for flow, settings in flows.items()})

    def has_been_on(self, target: str, cluster: str, topic: str) -> bool:
        """Return whether `topic` on `cluster` was made of a topic on `target`, by one flow or several."""
        seen: set[tuple[str, str]] = set()
        waiting = [(cluster, topic)]
        while waiting:
            copy = waiting.pop()
            if copy in seen:
                continue
            seen.add(copy)
            for source, upstream in self._made_from(*copy):
                if source == target:
                    return True
                waiting.append((source, upstream))
        return False

    def _made_from(self, cluster: str, topic: str) -> Iterator[tuple[str, str]]:
        for flow, policy in self.policies.items():
            upstream = policy.upstream_topic(topic)
            is_its_copy = policy.topic_source(topic) == flow.source and policy.proves_copy(topic)
            if flow.target == cluster and is_its_copy and upstream is not None:
                yield flow.source, upstream


class _Names(NamedTuple):
    """The names that a pattern of `topics` can match: one, or all that begin with `start`."""

    start: str
    is_whole: bool


@dataclass(frozen=True, slots=True)
class _NameKeeper:
    flow: Flow
    policy: ReplicationPolicy
    topics: NameFilter
    names: tuple[_Names, ...]

    def takes(self, name: str) -> bool:
        """Return whether the flow copies a topic of this name under the same name."""
        return self.topics.accepts(name) and self.keeps(name)

    def keeps(self, name: str) -> bool:
        return self.policy.format_remote_topic(self.flow.source, name) == name


def warn_about_cycles(flows: Mapping[Flow, Settings]) -> list[str]:
    """Return a warning for each cycle of flows that keep the names of topics they share."""
    keepers = {flow: keeper for flow, settings in flows.items() if (keeper := _name_keeper(flow, settings)).names}
    warnings = []
    for cycle in _cycles(tuple(keepers)):
        shared = _shared([keepers[flow] for flow in cycle])
        if shared is not None:
            warnings.append(_sentence(cycle, shared))
    return warnings


def _sentence(cycle: Sequence[Flow], shared: _Names) -> str:
    written = [str(flow) for flow in cycle]
    if shared.is_whole:
        topics = f"the topic '{shared.start}'"
    else:
        topics = f"topics that begin with '{shared.start}'" if shared.start else "topics of any name"
    return (
        f"{', '.join(written[:-1])} and {written[-1]} all copy {topics} without changing the name, so each record would"
        " be copied for ever; use DefaultReplicationPolicy, or set 'topics' of these flows so that they do not overlap."
    )


def _name_keeper(flow: Flow, settings: Settings) -> _NameKeeper:
    policy = make_policy(settings)
    patterns = settings[keys.TOPICS] if not is_custom(settings[keys.TOPIC_FILTER_CLASS]) else (".*",)
    keeper = _NameKeeper(flow, policy, topic_filter(settings), ())
    names = [_names_of(pattern) for pattern in patterns if pattern]
    kept = [item for item in names if (keeper.takes if item.is_whole else keeper.keeps)(_example(item))]
    return _NameKeeper(flow, policy, keeper.topics, tuple(kept))


def _names_of(pattern: str) -> _Names:
    if _PLAIN.fullmatch(pattern):
        return _Names(pattern.replace("\\.", "."), is_whole=True)
    if "|" in pattern or "(?" in pattern:
        return _Names("", is_whole=False)
    start = _LITERAL_START.match(pattern)
    return _Names(start[0].replace("\\.", ".") if start else "", is_whole=False)


def _example(names: _Names) -> str:
    return names.start if names.is_whole else names.start + _PROBE


def _cycles(flows: Sequence[Flow]) -> Iterator[tuple[Flow, ...]]:
    """Yield each cycle once: it begins at the smallest of its aliases."""

    def walk(path: tuple[Flow, ...]) -> Iterator[tuple[Flow, ...]]:
        first, at = path[0].source, path[-1].target
        if at == first:
            yield path
            return
        visited = {flow.source for flow in path}
        for flow in flows:
            if flow.source == at and flow.target >= first and flow.target not in visited - {first}:
                yield from walk((*path, flow))

    for flow in flows:
        if flow.target > flow.source:
            yield from walk((flow,))


def _shared(cycle: Sequence[_NameKeeper]) -> _Names | None:
    """Return what all flows of the cycle may copy; patterns count as overlapping unless they begin differently."""
    common = set(cycle[0].names)
    for keeper in cycle[1:]:
        common = {both for mine in common for theirs in keeper.names if (both := _overlap(mine, theirs))}
    real = [names for names in common if not names.is_whole or all(keeper.takes(names.start) for keeper in cycle)]
    return min(real, default=None)


def _overlap(one: _Names, other: _Names) -> _Names | None:
    shorter, longer = sorted((one, other), key=lambda names: len(names.start))
    if not longer.start.startswith(shorter.start) or (shorter.is_whole and longer.start != shorter.start):
        return None
    return longer if longer.is_whole or not shorter.is_whole else shorter
