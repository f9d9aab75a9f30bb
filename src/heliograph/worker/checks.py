"""What a configuration turns out to mean for the parts that use it, tried before anything is started.

Reading a file finds wrong values and contradictions; regexes, classes, addresses and logins are only understood by the
layers above. `run` and `validate` ask the same question here.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from heliograph.config import keys
from heliograph.config.dedicated import MirrorMakerConfig, Report, examine
from heliograph.config.names import ROLES
from heliograph.config.places import located
from heliograph.errors import ConfigError
from heliograph.mirror.filters import group_filter
from heliograph.mirror.topics import TopicRules
from heliograph.mirror.topology import warn_about_cycles
from heliograph.worker.clusters import cluster_spec

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from heliograph.config.forms import ConfigText
    from heliograph.config.placeholders import Lookup
    from heliograph.config.types import Settings


def examine_all(text: str | ConfigText, lookup: Lookup, only_targets: Iterable[str] = ()) -> Report:
    """Everything about a file that can be said without a cluster: as `examine`, and what the parts above say."""
    report = examine(text, lookup, only_targets)
    if report.sound is None:
        return report
    problems = config_problems(report.sound)
    warnings = [] if problems else _cycle_warnings(report.sound)
    return replace(report, problems=(*report.problems, *problems), warnings=(*report.warnings, *warnings))


def _cycle_warnings(config: MirrorMakerConfig) -> list[str]:
    return warn_about_cycles({flow: config.settings(flow) for flow in config.enabled_flows})


def config_problems(config: MirrorMakerConfig) -> list[str]:
    """Every problem of every flow, once, by the name its key has in the file."""
    problems: dict[str, None] = {}
    for settings, build in _parts(config):
        try:
            build()
        except ConfigError as error:
            problems |= dict.fromkeys(_located(config, settings, problem) for problem in error.problems)
    return list(problems)


def _parts(config: MirrorMakerConfig) -> Iterator[tuple[Settings, Callable[[], object]]]:
    """Each part that is made of settings, with those that its problems name."""
    for flow in config.flows:
        settings = config.settings(flow)
        yield settings, partial(TopicRules.of, settings)
        yield settings, partial(group_filter, settings)
        if config.resolver.is_patient:  # the secrets that clients are made of need not be there
            continue
        for alias in flow:
            for role in ROLES:
                yield config.client(alias, role, flow), partial(cluster_spec, config, alias, role, flow)
    for pair in () if config.resolver.is_patient else config.heartbeat_flows:
        client = config.client(pair.target, "producer", pair)
        yield client, partial(cluster_spec, config, pair.target, "producer", pair)


def _located(config: MirrorMakerConfig, settings: Settings, problem: str) -> str:
    """The problem with its key as the user wrote it, and the line; as it is where it begins with something else."""
    name, colon, rest = problem.partition(": ")
    written = settings.written(name) if name in keys.TABLE else name
    return located(f"{written}{colon}{rest}", config.lines, config.paths)
