"""`heliograph run FILE`: replicate every enabled flow of an MM2 dedicated-mode file, until stopped or once."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.inputs import MachineLookup, log_findings, read_mirror_file, secrets_option, spark_pairs
from heliograph.cli.output import Screen, close_screen, format_bytes, make_screen
from heliograph.cli.rest_service import file_rest, rest_option, wanted_rest
from heliograph.cli.signals import stop_on_signals
from heliograph.config import keys
from heliograph.config.validate.dedicated_file import usable
from heliograph.driver.flow.flow_status import prevents_copying
from heliograph.driver.flow.source_flow import SourceFlow
from heliograph.driver.loops.file_loops import Control
from heliograph.driver.spark.spark_engine import LaunchOptions, SparkEngine
from heliograph.driver.spark.spark_session import SparkDriver, SparkSettings
from heliograph.errors import EngineError
from heliograph.model import counted
from heliograph.operations.configuration_checks import examine_all
from heliograph.wire.batches.forward import warm_up

if TYPE_CHECKING:
    from collections.abc import Sequence

    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.model import Flow


log = logging.getLogger("heliograph")

EXIT_INCOMPLETE = 1
EXIT_START = 3
_POLL_S = 0.5


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, metavar="")
@click.option(
    "--clusters", "targets", metavar="TARGET", multiple=True, help="Only flows into this cluster; may be repeated."
)
@click.option("--once", is_flag=True, help="Copy up to the end offsets seen at the start, then exit.")
@click.option("--master", metavar="M", help="Spark master; by default local, with as many slots as the flows can use.")
@click.option("--conf", "confs", metavar="K=V", multiple=True, help="A Spark setting; may be repeated.")
@click.option("--verbose", is_flag=True, help="Log debug messages.")
@secrets_option
@rest_option
@click.pass_context
def run(
    context: click.Context,
    file: Path,
    more: tuple[str, ...],
    targets: tuple[str, ...],
    once: bool,
    master: str | None,
    confs: tuple[str, ...],
    verbose: bool,
) -> None:
    """Replicate between the clusters of FILE: an MM2 properties file as for connect-mirror-maker.sh, or a resource.

    A resource is the YAML of a KafkaMirrorMaker2, as for the operators of Strimzi and IBM Event Streams.

    Exits with 1 if something could not be copied, with --once also if checkpoints, group offsets, configs or ACLs could
    not be synchronized; with 2 for mistakes in the file or the options, and with 3 if it could not start.
    """
    more_targets, more_confs = _sort_out(more, has_targets=bool(targets), has_confs=bool(confs))
    config = usable(examine_all(read_mirror_file(file), MachineLookup(), (*targets, *more_targets)))
    spark = _spark_settings(config, master, (*confs, *more_confs))
    rest = wanted_rest(config)
    screen = make_screen(verbose=verbose)
    log_findings(file, config.warnings, config.notes)
    # If the kernels were never compiled this takes seconds; Spark takes as long to start.
    threading.Thread(target=warm_up, name="kernels", daemon=True).start()
    stopping = stop_on_signals()
    driver = SparkDriver(spark)
    engine = SparkEngine(driver)
    flows = [_make_flow(config, flow, engine, once=once) for flow in config.flows]
    control = Control(config, {flow.flow: flow.status for flow in flows})
    log.info(
        "Replicating %s; Spark's log is %s (kept if something fails)", ", ".join(map(str, config.flows)), spark.log_file
    )
    try:
        with file_rest(rest, config, flows, control):
            for flow in flows:
                flow.start()
            if not once:
                control.start()
            _watch(flows, screen, stopping, driver)
    finally:
        close_screen(screen)
        _end(engine, flows)
        if not once:
            control.stop()
    if once:
        control.run_once([flow.flow for flow in flows if flow.error is None])
    code = _summary(flows, once=once)
    for paused, why in config.paused.items():
        click.echo(f"{paused}: not run; {why}")
    if code == 0:
        spark.remove_files()
    context.exit(code)


def _sort_out(more: tuple[str, ...], *, has_targets: bool, has_confs: bool) -> tuple[list[str], list[str]]:
    """Return the further values of `--clusters A B` and `--conf a=1 b=2`, as connect-mirror-maker.sh accepts them."""
    targets = [word for word in more if "=" not in word]
    confs = [word for word in more if "=" in word]
    stray = [*([] if has_targets else targets), *([] if has_confs else confs)]
    if stray:
        raise click.UsageError(f"Got unexpected extra argument ({stray[0]})")
    return targets, confs


def _spark_settings(config: MirrorMakerConfig, master: str | None, confs: Sequence[str]) -> SparkSettings:
    return SparkSettings(master or f"local[{_local_slots(config)}]", spark_pairs(confs))


def _make_flow(config: MirrorMakerConfig, flow: Flow, engine: SparkEngine, *, once: bool) -> SourceFlow:
    settings = config.settings(flow)
    launch = LaunchOptions(settings[keys.LEASE_TIMEOUT_MS], settings[keys.UNENCRYPTED_SECRETS_ALLOWED])
    flow_count = len(config.flows)
    return SourceFlow(config, flow, engine, flow_count=flow_count, once=once, keeps_trying=not once, launch=launch)


def _local_slots(config: MirrorMakerConfig) -> int:
    """Return the slots of a local Spark: for every flow the same number, its cores or the largest `tasks.max`."""
    cores = os.cpu_count() or 1
    wanted = [config.settings(flow)[keys.TASKS_MAX] for flow in config.flows]
    return len(config.flows) * max(*(tasks_max or max(1, cores // len(config.flows)) for tasks_max in wanted), 1)


def _watch(flows: list[SourceFlow], screen: Screen, stopping: threading.Event, driver: SparkDriver) -> None:
    """Show the flows until all have ended, none of them can begin, or a signal comes.

    A flow that has failed for good does not stop the others; the exit code reports it.
    """
    while not stopping.wait(_POLL_S) and any(not flow.join(0) for flow in flows):
        screen.show([flow.status for flow in flows])
        if driver.error is not None:
            raise EngineError(str(driver.error))
        if all(flow.error is not None for flow in flows):
            return
    screen.show([flow.status for flow in flows])
    if stopping.is_set():
        log.info("Stopping: flushing and committing source offsets ...")


def _end(engine: SparkEngine, flows: list[SourceFlow]) -> None:
    started = time.monotonic()
    for flow in flows:
        flow.stop()
    for flow in flows:
        flow.join(60)
    engine.close()
    log.debug("stopped in %.1f s", time.monotonic() - started)


def _summary(flows: list[SourceFlow], *, once: bool) -> int:
    """Print the result of each flow; return the exit code."""
    code = 0
    for flow in flows:
        if flow.error is not None:
            click.echo(f"error: {flow.flow}: {flow.error}", err=True)
            code = EXIT_START
            continue
        _print_copied(flow.status)
        for failure in flow.status.failures:
            click.echo(f"error: {failure}", err=True)
            code = code or EXIT_INCOMPLETE
        for step, issues in flow.status.issues.items():
            for issue in issues:
                click.echo(f"error: {flow.flow}: {issue}", err=True)
            # A flow that keeps running completes its other steps later. With `--once` there is no later: a migration
            # would lack checkpoints, configs or ACLs.
            if once or prevents_copying(step):
                code = code or EXIT_INCOMPLETE
    return code


def _print_copied(status: FlowStatus) -> None:
    records, size = status.totals
    topics = counted(len(status.rows()), "topic")
    click.echo(f"{status.flow}: {status.state.lower()}, {counted(records, 'record')}, {format_bytes(size)}, {topics}")
    if status.lost_offsets:
        click.echo(f"{status.flow}: {_were(status.lost_offsets, 'offset')} gone from the source before being copied")
    if status.cut_offsets:
        click.echo(
            f"{status.flow}: {_were(status.cut_offsets, 'offset')} cut off at the source after being copied;"
            " the target keeps what was copied"
        )
    if status.skipped_records:
        click.echo(
            f"{status.flow}: {_were(status.skipped_records, 'record')} too large for the target and left out"
            " (errors.tolerance=all)"
        )


def _were(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'was' if number == 1 else 'were'}"
