"""What a configuration turns out to mean for the parts that use it, tried before anything is started.

Reading a file finds wrong values and contradictions; regexes, classes, addresses and logins are only understood by the
layers above. `run` and `validate` ask the same question here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from heliograph.config.dedicated import MirrorMakerConfig, Report, examine
from heliograph.config.names import ROLES
from heliograph.errors import ConfigError
from heliograph.mirror.topics import TopicRules
from heliograph.worker.clusters import cluster_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from heliograph.config.placeholders import Lookup


def examine_all(text: str, lookup: Lookup, only_targets: Iterable[str] = ()) -> Report:
    """Everything about a file that can be said without a cluster: as `examine`, and what the parts above say."""
    report = examine(text, lookup, only_targets)
    if report.sound is None:
        return report
    return replace(report, problems=(*report.problems, *config_problems(report.sound)))


def config_problems(config: MirrorMakerConfig) -> list[str]:
    """Every problem of every flow, once."""
    problems: dict[str, None] = {}
    for prefix, build in _parts(config):
        try:
            build()
        except ConfigError as error:
            problems |= dict.fromkeys(f"{prefix}{problem}" for problem in error.problems)
    return list(problems)


def _parts(config: MirrorMakerConfig) -> Iterator[tuple[str, Callable[[], object]]]:
    """Each part that is made of settings, and what to put before its problems where they do not name the cluster."""
    for flow in config.flows:
        yield f"{flow}: ", partial(TopicRules.of, config.settings(flow))
        for alias in flow:
            for role in ROLES:
                yield "", partial(cluster_spec, config, alias, role, flow)
    for pair in config.heartbeat_flows:
        yield "", partial(cluster_spec, config, pair.target, "producer", pair)
