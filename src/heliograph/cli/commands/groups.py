"""`heliograph groups` shows a flow's groups on both clusters; `heliograph translate` prints offsets by checkpoints.

Both are for a disaster. `groups` shows the other flows if the target of one is unavailable, and the other groups if we
may not describe one. `translate` needs only the target.
"""

from __future__ import annotations

import re
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from heliograph.cli.inputs import MachineLookup, load_file, parse_flow, read_config_file, secrets_option
from heliograph.cli.output import EXIT_REFUSED, EXIT_UNREACHABLE, show_json, table
from heliograph.client.mirror_client import MirrorClient
from heliograph.config import keys
from heliograph.config.resolve.placeholders import Resolver
from heliograph.config.syntax.properties import as_map, parse_properties
from heliograph.errors import ClusterError
from heliograph.mirror.groups.group_moves import DEAD
from heliograph.mirror.groups.group_view import GroupRow, report_groups, unfollowed
from heliograph.model import GroupType
from heliograph.operations.flow_groups import FlowGroups

if TYPE_CHECKING:
    from heliograph.client.mirror_client import Offsets
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.model import Flow


EXIT_NOT_FOUND = 1
_HEADER = (
    *("GROUP", "PARTITION", "OFFSET", "LAG", "TRANSLATED", "ON TARGET", "LAG THERE"),
    *("BEHIND", "CHECKPOINT", "AGE", "AGAIN", "STATE THERE", "IN SYNC"),
)


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.option("--flow", "flow_text", metavar="A->B", help="Only this flow.")
@click.option("--group", "names", metavar="G", multiple=True, help="Only this group; may be repeated.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@secrets_option
@click.pass_context
def groups(context: click.Context, file: Path, flow_text: str | None, names: tuple[str, ...], as_json: bool) -> None:
    """Show the offsets of each consumer group and share group on both clusters, and how far the target is behind.

    Offsets and lags are those of the source first, then of the target. BEHIND and CHECKPOINT count the records by which
    the group's offset on the target and its checkpoint are behind the source, AGE is the checkpoint's in seconds, AGAIN
    is what the group reads again at most if it fails over now; '-' is not known. Changes nothing. Exits with 3 if the
    target of a flow is unavailable, with 1 if a group may not be described; the others are shown.
    """
    config = load_file(file)
    flows = config.flows if flow_text is None else (parse_flow(config, flow_text),)
    reports = []
    for flow in flows:
        reports.append(report := _report_or_issue(config, flow, names))
        if not as_json:  # at once: the next flow may wait long for a cluster that is gone
            click.echo("\n".join(_lines(report)))
    if as_json:
        show_json({"flows": reports})
    context.exit(_exit_code(reports))


def _exit_code(reports: list[dict[str, Any]]) -> int:
    if any(report["trouble"] for report in reports):
        return EXIT_UNREACHABLE
    return EXIT_REFUSED if any(report["forbidden"] for report in reports) else 0


def _report_or_issue(config: MirrorMakerConfig, flow: Flow, names: tuple[str, ...]) -> dict[str, Any]:
    try:
        return _report(config, flow, names)
    except ClusterError as error:
        nothing: dict[str, Any] = {"source_trouble": None, "groups": [], "left_out": [], "forbidden": []}
        return {"flow": str(flow), "trouble": str(error), **nothing}


def _report(config: MirrorMakerConfig, flow: Flow, names: tuple[str, ...]) -> dict[str, Any]:
    with FlowGroups(config, flow) as flow_groups:
        wanted = names or flow_groups.followed()
        left_out = {group: why for group in names if (why := flow_groups.why_not(group)) is not None}
        others = flow_groups.of_other_types()
        left_out |= {group: why for group, why in others.items() if not names or group in names}
        view = flow_groups.view([group for group in wanted if group not in left_out])
        follows_groups = flow_groups.settings[keys.SYNC_GROUP_OFFSETS_ENABLED]
        rows = report_groups(view, follows_groups=follows_groups, now_ms=int(time.time() * 1000))
        left_out |= unfollowed(view)
        shown = {row.group for row in rows} | view.hidden.keys() | left_out.keys()
        unread = {group for group in view.groups if group not in shown}
        left_out |= dict.fromkeys(sorted(unread), f"it has committed nothing on '{flow.source}'")
        return {
            "flow": str(flow),
            "trouble": None,
            "source_trouble": flow_groups.source_issue,
            "groups": [_as_data(row) for row in rows],
            "left_out": [{"group": group, "why": why} for group, why in left_out.items()],
            "forbidden": [{"group": group, "why": why} for group, why in sorted(view.hidden.items())],
        }


def _as_data(row: GroupRow) -> dict[str, Any]:
    return {
        "group": row.group,
        "type": row.type.value,
        "topic": row.tp.topic,
        "partition": row.tp.partition,
        "remote_topic": row.remote_tp.topic,
        "source_offset": row.source_offset,
        "source_lag": row.source_lag,
        "translated_offset": row.translated_offset,
        "checkpoint_offset": row.checkpoint_offset,
        "target_offset": row.target_offset,
        "target_lag": row.target_lag,
        "target_state": row.target_state,
        "in_sync": row.is_in_sync,
        "why_not": row.why_not,
        "records_behind": row.behind,
        "checkpoint_records_behind": row.checkpoint_behind,
        "checkpoint_age_seconds": row.checkpoint_age_s,
        "records_again": row.again,
        "catching_up": row.is_catching_up,
    }


def _lines(report: dict[str, Any]) -> list[str]:
    lines = [report["flow"]]
    if report["trouble"]:
        return [*lines, f"  its groups are not known: {report['trouble']}"]
    if report["source_trouble"]:
        lines.append(f"  the source is unavailable, so checkpoints are used: {report['source_trouble']}")
    rows = [
        (
            *(_name(row), f"{row['topic']}-{row['partition']}"),
            *(row["source_offset"], row["source_lag"], row["translated_offset"]),
            *(row["target_offset"], row["target_lag"], row["records_behind"], row["checkpoint_records_behind"]),
            *(_seconds(row["checkpoint_age_seconds"]), row["records_again"], _state(row["target_state"])),
            _verdict(row),
        )
        for row in report["groups"]
    ]
    if rows or not report["forbidden"]:
        lines += [f"  {line}" for line in table(_HEADER, rows)] if rows else ["  no group is followed"]
    lines += [f"  forbidden: {each['group']}: {each['why']}" for each in report["forbidden"]]
    return lines + [f"  left out: {each['group']}: {each['why']}" for each in report["left_out"]]


def _seconds(age: float | None) -> str | None:
    return None if age is None else f"{age:,.0f} s"


def _verdict(row: dict[str, Any]) -> str:
    if row["in_sync"]:
        return "yes"
    return f"{'soon' if row['catching_up'] else 'no'}: {row['why_not']}"


def _name(row: dict[str, Any]) -> str:
    return row["group"] if row["type"] == GroupType.CONSUMER else f"{row['group']} ({row['type']})"


def _state(state: str) -> str:
    """Return the state for people: Kafka calls a group dead that has never existed."""
    return "none" if state == DEAD else state


@click.command()
@click.option(
    "--bootstrap", metavar="HOST:PORT", required=True, help="Brokers of the target, which has the checkpoints."
)
@click.option(
    "--source", metavar="ALIAS", required=True, help="Alias of the cluster where the group has committed offsets."
)
@click.option("--group", "names", metavar="G", multiple=True, help="A group; may be repeated.")
@click.option("--all", "is_all", is_flag=True, help="All groups that have checkpoints.")
@click.option("--config", "file", type=click.Path(path_type=Path), help="Client properties: security, naming policy.")
@click.option(
    "--timeout",
    "timeout_s",
    metavar="SECONDS",
    default=30.0,
    show_default=True,
    help="Timeout for reading checkpoints.",
)
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_context
def translate(
    context: click.Context,
    bootstrap: str,
    source: str,
    names: tuple[str, ...],
    is_all: bool,
    file: Path | None,
    timeout_s: float,
    as_json: bool,
) -> None:
    """Print the translated offsets of groups of another cluster, from their latest checkpoints. Changes nothing.

    Exits with 1 if a group has no checkpoint.
    """
    if bool(names) == is_all:
        raise click.UsageError("Give --group, or --all for every group that has checkpoints.")
    properties = _properties(file) | {"bootstrap.servers": bootstrap}
    with MirrorClient(properties) as client:
        topic = client.replication_policy.checkpoints_topic(source)
        is_there = topic in client.checkpoint_topics()
        found = client.remote_consumer_offsets(re.compile(".*", re.DOTALL), source, timeout_s)
    wanted = {group: found.get(group, {}) for group in (names or sorted(found))}
    if as_json:
        show_json(
            {"source": source, "groups": [_translation_as_data(group, offsets) for group, offsets in wanted.items()]}
        )
    elif any(wanted.values()):
        rows = [(group, tp, there.offset) for group, offsets in wanted.items() for tp, there in sorted(offsets.items())]
        click.echo("\n".join(table(("GROUP", "PARTITION", "OFFSET"), rows)))
    missing = [group for group, offsets in wanted.items() if not offsets]
    why = "" if is_there else f": there is no topic {topic}; does a flow from '{source}' write checkpoints here?"
    for group in missing:
        click.echo(f"error: the group '{group}' has no checkpoint from '{source}'{why}", err=True)
    if is_all and not found:
        click.echo(f"error: no group has a checkpoint from '{source}'{why}", err=True)
    context.exit(EXIT_NOT_FOUND if missing or not found else 0)


def _properties(file: Path | None) -> dict[str, str]:
    if file is None:
        return {}
    raw = as_map(parse_properties(read_config_file(file)))
    resolver = Resolver(MachineLookup(), raw)
    return {name: resolver.resolve(name, value) for name, value in raw.items()}


def _translation_as_data(group: str, offsets: Offsets) -> dict[str, object]:
    return {
        "group": group,
        "offsets": [
            {"topic": tp.topic, "partition": tp.partition, "offset": there.offset, "metadata": there.metadata}
            for tp, there in sorted(offsets.items())
        ],
    }
