"""`heliograph plan FILE`: what `run` would create, grow, alter, copy and skip, and why; changes nothing.

A flow whose clusters are unreachable does not keep the others from being planned.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.acl_texts import acl_data
from heliograph.cli.inputs import MachineLookup, read_mirror_file, secrets_option
from heliograph.cli.output import EXIT_UNREACHABLE
from heliograph.config.validate.dedicated_file import load
from heliograph.errors import ClusterError
from heliograph.model import counted
from heliograph.operations.flow_plan import FlowPlan, plan_flow

if TYPE_CHECKING:
    from collections.abc import Iterable

    from heliograph.config.effective.mirror_config import MirrorConfig
    from heliograph.model import ConfigChange, CreateTopic, Flow


EXIT_ISSUES = 1


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, metavar="")
@click.option(
    "--clusters", "targets", metavar="TARGET", multiple=True, help="Only flows into this cluster; may be repeated."
)
@click.option("--topic", metavar="NAME", help="Explain one topic of the source only; it need not exist.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@secrets_option
@click.pass_context
def plan(
    context: click.Context,
    file: Path,
    more: tuple[str, ...],
    targets: tuple[str, ...],
    topic: str | None,
    as_json: bool,
) -> None:
    """Print what `run FILE` would create, alter, copy or skip, and why. Changes nothing.

    Exits with 1 if something prevents the run, such as a missing permission, and with 3 if a cluster of a flow is
    unreachable; the other flows are planned.
    """
    if more and not targets:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    config = load(read_mirror_file(file), MachineLookup(), (*targets, *more))
    for warning in config.warnings:
        click.echo(f"warning: {warning}", err=True)
    plans = []
    for flow in config.flows:
        plans.append(flow_plan := _plan_or_issue(config, flow, topic))
        if not as_json:  # at once: the next flow may wait long for a cluster that is gone
            click.echo("\n".join(as_lines(flow_plan)))
    if as_json:
        flows = [as_data(flow_plan) for flow_plan in plans]
        paused = [{"flow": str(flow), "why": why} for flow, why in config.paused.items()]
        click.echo(json.dumps({"flows": flows, "paused": paused} if paused else {"flows": flows}, indent=2))
    else:
        for flow, why in config.paused.items():
            click.echo(f"{flow}\n  nothing is done: {why}")
    context.exit(_exit_code(plans))


def _plan_or_issue(config: MirrorConfig, flow: Flow, topic: str | None) -> FlowPlan:
    try:
        return plan_flow(config, flow, topic)
    except ClusterError as error:
        return FlowPlan(flow, is_planned=False, issues=[str(error)])


def _exit_code(plans: list[FlowPlan]) -> int:
    if not all(plan.is_planned for plan in plans):
        return EXIT_UNREACHABLE
    return EXIT_ISSUES if any(map(_is_in_the_way, plans)) else 0


def _is_in_the_way(plan: FlowPlan) -> bool:
    return bool(plan.issues) or any(not missing.is_for_later for missing in plan.missing_acls)


def as_lines(plan: FlowPlan) -> list[str]:
    """A plan as text, one thing per line."""
    parts: list[tuple[str, Iterable[str]]] = [
        ("create", map(_created, plan.creates)),
        ("grow", (f"{topic}: {old} -> {counted(new, 'partition')}" for topic, old, new in plan.grows)),
        ("alter", (f"{alter.topic}: {', '.join(map(_changed, alter.changes))}" for alter in plan.alters)),
        ("add ACL", map(str, plan.adds_acls)),
        (
            "copy",
            (f"{each.topic} -> {each.remote_topic} ({counted(each.partitions, 'partition')})" for each in plan.copies),
        ),
        ("skip", (f"{topic}: {reason}" for topic, reason in plan.skips)),
        ("missing", (f"ACL: {missing}" for missing in plan.missing_acls)),
        ("warning", plan.warnings),
        ("note", plan.notes),
        ("issue", plan.issues),
    ]
    lines = [f"  {label:8} {text}" for label, texts in parts for text in texts]
    if not plan.is_planned:
        lines.append("  nothing else is known about this flow")
    elif not (plan.creates or plan.grows or plan.alters or plan.adds_acls):
        lines.append("  nothing to create, grow, alter or add")
    return [str(plan.flow), *lines]


def as_data(plan: FlowPlan) -> dict[str, Any]:
    """Return a plan as plain values for JSON; a config's `new` is null if it returns to the target's default."""
    return {
        "flow": str(plan.flow),
        "source": plan.flow.source,
        "target": plan.flow.target,
        "is_planned": plan.is_planned,
        "create": [
            {
                "topic": topic.name,
                "partitions": topic.partition_count,
                "replication_factor": topic.replication_factor,
                "configs": dict(topic.configs),
            }
            for topic in plan.creates
        ],
        "grow": [grown._asdict() for grown in plan.grows],
        "alter": [
            {"topic": alter.topic, "changes": [change._asdict() for change in alter.changes]} for alter in plan.alters
        ],
        "add_acls": [acl._asdict() for acl in plan.adds_acls],
        "copy": [copied._asdict() for copied in plan.copies],
        "skip": [skipped._asdict() for skipped in plan.skips],
        "missing_acls": [
            {"cluster": missing.cluster, **acl_data(missing.acl), "is_for_later": missing.is_for_later}
            for missing in plan.missing_acls
        ],
        "warnings": plan.warnings,
        "notes": plan.notes,
        "troubles": plan.issues,
    }


def _created(topic: CreateTopic) -> str:
    parts = [counted(topic.partition_count, "partition"), f"replication factor {topic.replication_factor}"]
    parts += [f"{name}={value}" for name, value in topic.configs]
    return f"{topic.name}: {', '.join(parts)}"


def _changed(change: ConfigChange) -> str:
    return f"{change.name} {change.old} -> {'the default' if change.new is None else change.new}"
