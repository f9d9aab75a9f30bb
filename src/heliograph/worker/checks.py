"""What a configuration turns out to mean for the parts that use it, tried before anything is started.

Reading a file finds wrong values and contradictions; regexes, classes, addresses and logins are only understood by the
layers above. `run` and `validate` ask the same question here; only `validate` also asks whether the files are there
that a configuration names, since a flow whose file comes later begins later.

Invariant: each part is tried by itself, and of a name that is settled no more is said: one report has everything.
"""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from heliograph.config import keys
from heliograph.config.dedicated import MirrorMakerConfig, Report, examine
from heliograph.config.names import ROLES
from heliograph.config.places import in_order, located
from heliograph.config.worker_file import WorkerReport, examine_worker
from heliograph.errors import ConfigError
from heliograph.mirror.filters import config_property_filter, group_filter, topic_filter
from heliograph.mirror.policy import make_policy
from heliograph.mirror.topology import warn_about_cycles
from heliograph.worker.clusters import spec_of
from heliograph.worker.named_files import check_files

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from heliograph.config.forms import ConfigText
    from heliograph.config.placeholders import Lookup
    from heliograph.config.types import Settings


class Part(NamedTuple):
    """Something that is made of settings, and those settings: its problems name their keys."""

    settings: Settings
    build: Callable[[], object]


def examine_all(
    text: str | ConfigText, lookup: Lookup, only_targets: Iterable[str] = (), *, with_files: bool = False
) -> Report:
    """Everything about a file that can be said without a cluster: as `examine`, and what the parts above say."""
    report = examine(text, lookup, only_targets)
    if report.sound is None:
        return report
    parts = [*_parts(report.sound), *(_file_parts(report.sound) if with_files else ())]
    problems = part_problems(parts, report.settled, report.sound.lines, report.sound.paths)
    warnings = _cycle_warnings(report.sound)
    return replace(report, problems=in_order((*report.problems, *problems)), warnings=(*report.warnings, *warnings))


def examine_worker_all(text: str, lookup: Lookup) -> WorkerReport:
    """The same for the file of a Connect worker, with the files that it names."""
    report = examine_worker(text, lookup)
    if report.sound is None:
        return report
    client = report.sound.client
    parts = [Part(client, partial(spec_of, client, "worker")), Part(client, partial(check_files, client))]
    problems = part_problems(parts, report.settled, report.sound.lines, {})
    return replace(report, problems=in_order(dict.fromkeys((*report.problems, *problems))))


def _cycle_warnings(config: MirrorMakerConfig) -> list[str]:
    try:
        return warn_about_cycles({flow: config.settings(flow) for flow in config.enabled_flows})
    except ConfigError:  # a policy or a pattern that cannot be used, which is told as a problem
        return []


def part_problems(
    parts: Iterable[Part], settled: frozenset[str], lines: Mapping[str, int], paths: Mapping[str, str]
) -> list[str]:
    """Every problem of every part, once, by the name its key has in the file."""
    problems: dict[str, None] = {}
    for part in parts:
        try:
            part.build()
        except ConfigError as error:
            for problem in error.problems:
                name, colon, rest = problem.partition(": ")
                written = part.settings.written(name) if name in keys.TABLE else name
                if written not in settled:
                    problems[located(f"{written}{colon}{rest}", lines, paths)] = None
    return list(problems)


def _parts(config: MirrorMakerConfig) -> Iterator[Part]:
    for flow in config.flows:
        settings = config.settings(flow)
        for make in (make_policy, topic_filter, config_property_filter, group_filter):
            yield Part(settings, partial(make, settings))
    for alias, client in _clients(config):
        yield Part(client, partial(spec_of, client, alias))


def _file_parts(config: MirrorMakerConfig) -> Iterator[Part]:
    for _alias, client in _clients(config):
        yield Part(client, partial(check_files, client))


def _clients(config: MirrorMakerConfig) -> Iterator[tuple[str, Settings]]:
    """Every client, with the alias of its cluster; none where the secrets they are made of need not be there."""
    if config.resolver.is_patient:
        return
    for flow in config.flows:
        for alias in flow:
            for role in ROLES:
                yield alias, config.client(alias, role, flow)
    for pair in config.heartbeat_flows:
        yield pair.target, config.client(pair.target, "producer", pair)
