"""`heliograph failover` and `failback`: move consumer and share groups to the other cluster of a flow, or home again.

Both say what they do partition by partition, set only offsets of groups without members, only forward, and end with 1
where a group could not be moved. A group is said to continue only where all its offsets are there: consumers that start
without them begin by `auto.offset.reset` (a share group: by `share.auto.offset.reset`), and may pass over records.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.inputs import load_file, parse_flow, secrets_option
from heliograph.cli.output import EXIT_REFUSED, show_json, table
from heliograph.mirror.groups.group_moves import GroupPlan, Outcome
from heliograph.mirror.groups.group_view import left_behind, plan_failback, plan_failover
from heliograph.model import Flow, GroupType, counted
from heliograph.operations.flow_groups import (
    FlowGroups,
    Result,
    _carry_out,
    _check_home,
    _is_active,
    _left_behind,
    _not_replicated,
    _with_near_names,
)

if TYPE_CHECKING:
    from collections.abc import Callable


_HEADER = ("PARTITION", "BEFORE", "OFFSET", "AGAIN", "")
_WORDS = {
    Outcome.SET: "set",
    Outcome.STAYS: "stays",
    Outcome.IMPOSSIBLE: "NOT SET",
    Outcome.REFUSED: "REFUSED",
}


def _options(command: Callable[..., None]) -> Callable[..., None]:
    for option in (
        secrets_option,
        click.option("--json", "as_json", is_flag=True, help="Print JSON."),
        click.option("--dry-run", is_flag=True, help="Say what would be done; do nothing."),
        click.option("--all", "is_all", is_flag=True, help="All groups of the flow."),
        click.option("--group", "names", metavar="G", multiple=True, help="A group to move; may be repeated."),
        click.option("--flow", "flow_text", metavar="A->B", help="The flow; needed where the file has several."),
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
    """Set the offsets of consumer and share groups on the target of a flow, so that they go on there.

    The source may be gone; its checkpoints on the target are enough. Groups that have members on the target are
    refused. Ends with 1 where a group could not be moved, or where the source is gone and no checkpoint tells of one.
    """
    names = _check_groups(names, more, is_all=is_all)
    config = load_file(file)
    flow = parse_flow(config, flow_text)
    with FlowGroups(config, flow, moves_to=flow.target) as flow_groups:
        view = flow_groups.view(names or flow_groups.followed())
        plans = _with_near_names(plan_failover(view), view, flow_groups.followed)
        results = [_carry_out(plan, flow_groups.target_groups, dry_run=dry_run) for plan in plans]
        results = [
            result._replace(
                not_replicated=_not_replicated(view, result.plan),
                left_behind=tuple(left_behind(view, result.plan.group, is_failback=False)),
                reads_still_on=flow.source if _is_active(view.source, result.plan.group) else None,
                hidden=view.hidden.get(result.plan.group),
            )
            for result in results
        ]
        issue = flow_groups.source_issue
    _show(flow, flow.target, issue, results, dry_run=dry_run, as_json=as_json)
    context.exit(_exit_code(results, issue))


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
    """Set the offsets of consumer and share groups on the SOURCE of a flow, so that they go home to it.

    Offsets in the flow's copies (A.t on B) are translated back to the topics they came from (t on A). Where FILE also
    enables the flow B->A, offsets in B's own topics are translated to its copies (B.t on A). Groups that have members
    on the source are refused. Ends with 1 where a group could not be moved.
    """
    names = _check_groups(names, more, is_all=is_all)
    config = load_file(file)
    flow = parse_flow(config, flow_text)
    reverse = Flow(flow.target, flow.source)
    with FlowGroups(config, flow, moves_to=flow.source) as flow_groups:
        _check_home(flow_groups)
        view = flow_groups.view(names or flow_groups.at_target())
        _check_home(flow_groups)
        back = None
        if reverse in config.flows:
            with FlowGroups(config, reverse, moves_to=flow.source) as reverse_groups:
                back = reverse_groups.view(view.groups)
        plans = _with_near_names(plan_failback(view, back), view, flow_groups.at_target)
        results = [_carry_out(plan, flow_groups.source_groups, dry_run=dry_run) for plan in plans]
    results = [
        result._replace(
            left_behind=_left_behind(view, back, result.plan.group),
            reads_still_on=flow.target if _is_active(view.target, result.plan.group) else None,
        )
        for result in results
    ]
    if back is not None:
        results = [result._replace(not_replicated=_not_replicated(back, result.plan)) for result in results]
    _show(flow, flow.source, None, results, dry_run=dry_run, as_json=as_json)
    context.exit(_exit_code(results))


def _check_groups(names: tuple[str, ...], more: tuple[str, ...], *, is_all: bool) -> tuple[str, ...]:
    """The groups that are named, also as `--group a b c`; none with `--all`."""
    if more and not names:
        raise click.UsageError(f"Got unexpected extra argument ({more[0]})")
    if bool(names) == is_all:
        raise click.UsageError("Give --group, or --all for every group of the flow.")
    return (*names, *more)


def _exit_code(results: list[Result], source_issue: str | None = None) -> int:
    # Where the source is gone and its checkpoints are missing, no group is known: that is not the same as none to move.
    is_known = bool(results) or source_issue is None
    return 0 if is_known and all(result.is_moved for result in results) else EXIT_REFUSED


def _show(
    flow: Flow, cluster: str, source_issue: str | None, results: list[Result], *, dry_run: bool, as_json: bool
) -> None:
    if as_json:
        data = [_as_data(result) for result in results]
        head = {"flow": str(flow), "cluster": cluster, "dry_run": dry_run, "source_trouble": source_issue}
        show_json({**head, "groups": data})
        return
    if source_issue is not None:
        click.echo(f"'{flow.source}' cannot be asked, so checkpoints tell: {source_issue}")
    if not results:
        click.echo(f"{flow}: there is no group to move" + ("; no checkpoint tells of one" if source_issue else ""))
    for result in results:
        lines = _lines(result, cluster, dry_run=dry_run)
        if (source_issue or result.hidden) and result.plan.refused is None:
            lines.append("  what it has read since its last checkpoint is read again, too")
        click.echo("\n".join(lines))


def _lines(result: Result, cluster: str, *, dry_run: bool) -> list[str]:
    plan = result.plan
    if plan.refused is not None:
        return [f"{plan.group}: REFUSED on '{cluster}': {plan.refused}"]
    words = [_headline(result, cluster, dry_run=dry_run), f"records read again: {_again(plan.again)}"]
    if result.not_replicated is not None:
        words.append(f"not replicated yet: {result.not_replicated:,}")
    rows = [(m.tp, m.before, m.offset, m.again, f"{_WORDS[m.outcome]}: {m.why}") for m in plan.moves]
    lines = ["; ".join(words), *(f"  {line}" for line in table(_HEADER, rows))]
    if result.hidden is not None:
        lines.append(f"  its checkpoints tell: {result.hidden}")
    if result.issue is not None:
        lines.append(f"  REFUSED: {result.issue}")
    if not (result.is_moved or dry_run):
        lines.append(
            f"  do not start its consumers on '{cluster}' yet: without an offset they begin by {_reset_key(plan)}"
        )
    if result.reads_still_on is not None:
        lines.append(f"  it still has members on '{result.reads_still_on}': what they read from now on is read again")
    return lines + [f"  left behind: {tp}, which no flow copies to '{cluster}'" for tp in result.left_behind]


def _headline(result: Result, cluster: str, *, dry_run: bool) -> str:
    plan, done = result.plan, "to set" if dry_run else "set"
    count = len(plan.offsets)
    if not result.is_moved:
        verb = "WOULD NOT MOVE" if dry_run else "NOT MOVED"
        return f"{plan.group}: {verb} to '{cluster}' ({count} of {counted(plan.wanted_count, 'offset')} {done})"
    verb = "would continue" if dry_run else "continues"
    return f"{plan.group}: {verb} on '{cluster}', {counted(count, 'offset')} {done}"


def _reset_key(plan: GroupPlan) -> str:
    return "share.auto.offset.reset" if plan.type is GroupType.SHARE else "auto.offset.reset"


def _again(count: int | None) -> str:
    if count is None:
        return "not known"
    return f"at most {count:,}" if count else "0"


def _as_data(result: Result) -> dict[str, Any]:
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
        "reads_still_on": result.reads_still_on,
        "left_behind": [{"topic": tp.topic, "partition": tp.partition} for tp in result.left_behind],
        "partitions": [
            {
                "topic": move.tp.topic,
                "partition": move.tp.partition,
                "outcome": move.outcome.value,
                "before": move.before,
                "offset": move.offset,
                "again": move.again,
                "why": move.why,
            }
            for move in plan.moves
        ],
    }
