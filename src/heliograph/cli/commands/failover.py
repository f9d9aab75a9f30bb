"""`heliograph failover` and `failback`: move consumer and share groups to the other cluster of a flow, or back.

Both print the decision for each partition, and exit with 1 if a group could not be moved. `operations/failover` moves
the groups.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.inputs import load_file, parse_flow, secrets_option
from heliograph.cli.output import EXIT_REFUSED, show_json, table
from heliograph.mirror.groups.group_moves import Outcome
from heliograph.model import GroupType, counted
from heliograph.operations.failover import failback_groups, failover_groups

if TYPE_CHECKING:
    from collections.abc import Callable

    from heliograph.mirror.groups.group_moves import GroupPlan, Move
    from heliograph.model import Flow
    from heliograph.operations.failover import GroupResult, GroupResults


_HEADER = ("PARTITION", "BEFORE", "OFFSET", "AGAIN", "")
_OUTCOME_NAMES = {
    Outcome.SET: "set",
    Outcome.STAYS: "stays",
    Outcome.IMPOSSIBLE: "NOT SET",
    Outcome.REFUSED: "REFUSED",
}


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        secrets_option,
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--dry-run", is_flag=True, help="Show what would be done, without changes."),
        click.option("--all", "is_all", is_flag=True, help="All groups of the flow."),
        click.option("--group", "names", metavar="G", multiple=True, help="A group to move; may be repeated."),
        click.option("--flow", "flow_text", metavar="A->B", help="The flow; required if the file has several."),
        click.argument("more", nargs=-1, metavar=""),
        click.argument("file", type=click.Path(path_type=Path)),
    ):
        command = option(command)
    return command


@click.command()
@_options
@click.pass_context
def failover(
    context: click.Context,
    file: Path,
    more: tuple[str, ...],
    flow_text: str | None,
    names: tuple[str, ...],
    is_all: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the offsets of consumer and share groups on the target of a flow, so that they resume there.

    The source may be unavailable; its checkpoints on the target are enough. Groups that have members on the target are
    refused. Exits with 1 if a group could not be moved, or if the source is unavailable and no group has a checkpoint.
    """
    names = _check_groups(names, more, is_all=is_all)
    config = load_file(file)
    flow = parse_flow(config, flow_text)
    results = failover_groups(config, flow, names, dry_run=dry_run)
    _show(flow, flow.target, results, dry_run=dry_run, as_json=as_json)
    context.exit(_exit_code(results))


@click.command()
@_options
@click.pass_context
def failback(
    context: click.Context,
    file: Path,
    more: tuple[str, ...],
    flow_text: str | None,
    names: tuple[str, ...],
    is_all: bool,
    dry_run: bool,
    as_json: bool,
) -> None:
    """Set the offsets of consumer and share groups on the SOURCE of a flow, so that they move back to it.

    Offsets in the flow's copies (A.t on B) are translated back to the topics they came from (t on A). If FILE also
    enables the flow B->A, offsets in B's own topics are translated to its copies (B.t on A). Groups that have members
    on the source are refused. Exits with 1 if a group could not be moved.
    """
    names = _check_groups(names, more, is_all=is_all)
    config = load_file(file)
    flow = parse_flow(config, flow_text)
    results = failback_groups(config, flow, names, dry_run=dry_run)
    _show(flow, flow.source, results, dry_run=dry_run, as_json=as_json)
    context.exit(_exit_code(results))


def _check_groups(names: tuple[str, ...], more: tuple[str, ...], *, is_all: bool) -> tuple[str, ...]:
    """Return the groups that are named, also as `--group a b c`; none with `--all`."""
    if more and not names:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    if bool(names) == is_all:
        raise click.UsageError("Give --group, or --all for every group of the flow.")
    return (*names, *more)


def _exit_code(results: GroupResults) -> int:
    # Without the source and without checkpoints no group is known, which is not the same as no group to move.
    is_known = bool(results.groups) or results.source_issue is None
    return 0 if is_known and all(result.is_moved for result in results.groups) else EXIT_REFUSED


def _show(flow: Flow, cluster: str, results: GroupResults, *, dry_run: bool, as_json: bool) -> None:
    source_issue = results.source_issue
    if as_json:
        data = [_as_data(result) for result in results.groups]
        head = {"flow": str(flow), "cluster": cluster, "dry_run": dry_run, "source_trouble": source_issue}
        show_json({**head, "groups": data})
        return
    if source_issue is not None:
        click.echo(f"'{flow.source}' is unavailable, so checkpoints are used: {source_issue}")
    if not results.groups:
        click.echo(f"{flow}: there is no group to move" + ("; no group has a checkpoint" if source_issue else ""))
    for result in results.groups:
        lines = _lines(result, cluster, dry_run=dry_run)
        if (source_issue or result.hidden) and result.plan.refused is None:
            lines.append(f"  what it has read since its last checkpoint is read again, too{_at_most(result)}")
        click.echo("\n".join(lines))


def _lines(result: GroupResult, cluster: str, *, dry_run: bool) -> list[str]:
    plan = result.plan
    if plan.refused is not None:
        return [f"{plan.group}: REFUSED on '{cluster}': {plan.refused}"]
    parts = [_headline(result, cluster, dry_run=dry_run), f"records read again: {_again(plan.again)}"]
    if result.not_replicated is not None:
        parts.append(f"not replicated yet: {result.not_replicated:,}")
    rows = [(m.tp, m.before, m.offset, m.again, f"{_OUTCOME_NAMES[m.outcome]}: {_reason(m)}") for m in plan.moves]
    lines = ["; ".join(parts), *(f"  {line}" for line in table(_HEADER, rows))]
    if result.hidden is not None:
        lines.append(f"  its checkpoints are used: {result.hidden}")
    if result.issue is not None:
        lines.append(f"  REFUSED: {result.issue}")
    if not (result.is_moved or dry_run):
        lines.append(
            f"  do not start its consumers on '{cluster}' yet: without an offset they begin by {_reset_key(plan)}"
        )
    if result.reads_still_on is not None:
        lines.append(f"  it still has members on '{result.reads_still_on}': what they read from now on is read again")
    if result.not_released is not None:
        lines.append(f"  group sync leaves the offsets on the cluster it comes from as they are: {result.not_released}")
    return lines + [f"  left behind: {tp}, which no flow copies to '{cluster}'" for tp in result.left_behind]


def _at_most(result: GroupResult) -> str:
    count = result.since_checkpoint
    return "" if count is None else f": at most {counted(count, 'record')}"


def _headline(result: GroupResult, cluster: str, *, dry_run: bool) -> str:
    plan, done = result.plan, "to set" if dry_run else "set"
    count = len(plan.offsets)
    if not result.is_moved:
        partly, none = ("WOULD MOVE PARTLY", "WOULD NOT MOVE") if dry_run else ("MOVED PARTLY", "NOT MOVED")
        verb = partly if count else none
        return f"{plan.group}: {verb} to '{cluster}' ({count} of {counted(plan.wanted_count, 'offset')} {done})"
    verb = "would continue" if dry_run else "continues"
    return f"{plan.group}: {verb} on '{cluster}', {counted(count, 'offset')} {done}"


def _reason(move: Move) -> str:
    return f"{move.why}, by {counted(move.passed, 'offset')}" if move.passed else move.why


def _reset_key(plan: GroupPlan) -> str:
    return "share.auto.offset.reset" if plan.type is GroupType.SHARE else "auto.offset.reset"


def _again(count: int | None) -> str:
    if count is None:
        return "not known"
    return f"at most {count:,}" if count else "0"


def _as_data(result: GroupResult) -> dict[str, Any]:
    plan = result.plan
    return {
        "group": plan.group,
        "type": plan.type.value,
        "state": plan.state,
        "moved": result.is_moved,
        "refused": plan.refused,
        "troubles": [issue for issue in (result.issue, result.hidden) if issue and issue != plan.refused],
        "records_again": plan.again,
        "not_replicated": result.not_replicated,
        "since_checkpoint_at_most": result.since_checkpoint,
        "reads_still_on": result.reads_still_on,
        "not_released": result.not_released,
        "left_behind": [{"topic": tp.topic, "partition": tp.partition} for tp in result.left_behind],
        "partitions": [
            {
                "topic": move.tp.topic,
                "partition": move.tp.partition,
                "outcome": move.outcome.value,
                "before": move.before,
                "offset": move.offset,
                "again": move.again,
                "skipped_at_least": move.skipped,
                "passed": move.passed,
                "why": move.why,
            }
            for move in plan.moves
        ],
    }
