"""`heliograph run FILE`: replicate every enabled flow of an MM2 dedicated-mode file, until stopped or once."""

from __future__ import annotations

import logging
import os
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from heliograph.cli.config_reload import ConfigReload, file_digest
from heliograph.cli.inputs import MachineLookup, log_findings, read_mirror_file, secrets_option, spark_pairs
from heliograph.cli.metrics_service import metrics_option, wanted_metrics
from heliograph.cli.output import (
    Screen,
    close_screen,
    format_bytes,
    log_format_option,
    make_screen,
    say,
    verbose_option,
)
from heliograph.cli.rest_service import file_rest, rest_actions_option, rest_option, wanted_rest
from heliograph.cli.signals import hung_up, stop_on_signals
from heliograph.config import keys
from heliograph.config.validate.dedicated_file import usable
from heliograph.driver.flow.flow_status import prevents_copying
from heliograph.driver.loops.mirror_process import MirrorProcess
from heliograph.driver.spark.spark_engine import SparkEngine
from heliograph.driver.spark.spark_session import SparkDriver, SparkSettings
from heliograph.errors import EngineError
from heliograph.model import counted
from heliograph.operations.configuration_checks import examine_all
from heliograph.wire.batches.forward import warm_up

if TYPE_CHECKING:
    from heliograph.config.effective.mirror_config import MirrorMakerConfig
    from heliograph.driver.flow.flow_status import FlowStatus
    from heliograph.driver.flow.source_flow import SourceFlow


log = logging.getLogger("heliograph")

EXIT_INCOMPLETE = 1
EXIT_START = 3
_POLL_S = 0.5
# Threads of a local Spark only wait for their tasks. The spare ones are for flows and tasks that a changed file adds.
_LOCAL_SLOTS = 256


@click.command()
@click.argument("file", type=click.Path(path_type=Path))
@click.argument("more", nargs=-1, metavar="")
@click.option(
    "--clusters", "targets", metavar="TARGET", multiple=True, help="Only flows into this cluster; may be repeated."
)
@click.option("--once", is_flag=True, help="Copy up to the end offsets seen at the start, then exit.")
@click.option(
    "--watch",
    "is_watched",
    is_flag=True,
    help="Apply changes of FILE while it runs, within seconds. SIGHUP applies them once, with or without this option.",
)
@click.option("--master", metavar="M", help="Spark master; by default local, with as many slots as the flows can use.")
@click.option("--conf", "confs", metavar="K=V", multiple=True, help="A Spark setting; may be repeated.")
@verbose_option
@log_format_option
@secrets_option
@rest_option
@rest_actions_option
@metrics_option
@click.pass_context
def run(
    context: click.Context,
    file: Path,
    more: tuple[str, ...],
    targets: tuple[str, ...],
    once: bool,
    is_watched: bool,
    master: str | None,
    confs: tuple[str, ...],
) -> None:
    """Replicate between the clusters of FILE: an MM2 properties file as for connect-mirror-maker.sh, or a resource.

    A resource is the YAML of a KafkaMirrorMaker2, as for the operators of Strimzi and IBM Event Streams.

    Exits with 1 if something could not be copied, with --once also if checkpoints, group offsets, configs or ACLs could
    not be synchronized; with 2 for mistakes in the file or the options, and with 3 if it could not start.
    """
    more_targets, more_confs = _sort_out(more, has_targets=bool(targets), has_confs=bool(confs))
    _check_options(once=once, is_watched=is_watched)

    def read() -> MirrorMakerConfig:
        return usable(examine_all(read_mirror_file(file), MachineLookup(), (*targets, *more_targets)))

    digest = file_digest(file)
    config = read()
    spark = SparkSettings(
        master or _local_master(config), spark_pairs((*confs, *more_confs)), buffer_bytes=_largest_buffer(config)
    )
    rest, metrics = wanted_rest(config), wanted_metrics(config.raw, config.resolver)
    screen = make_screen()
    log_findings(file, config.warnings, config.notes)
    # If the kernels were never compiled this takes seconds; Spark takes as long to start.
    threading.Thread(target=warm_up, name="kernels", daemon=True).start()
    stopping = stop_on_signals()
    driver = SparkDriver(spark)
    engine = SparkEngine(driver)
    process = MirrorProcess(config, engine, once=once, slots=None if master else _local_slots)
    log.info(
        "Replicating %s; Spark's log is %s (kept if something fails)", ", ".join(map(str, config.flows)), spark.log_file
    )
    try:
        with file_rest(rest, metrics, process):
            process.start()
            requested = threading.Event() if once else hung_up()
            reload = ConfigReload(file, read, process, requested, digest, is_watched=is_watched)
            _watch(process, screen, stopping, driver, reload)
    finally:
        close_screen(screen)
        _end(engine, process)
        if not once:
            process.control.stop()
    flows = list(process.flows.values())
    if once:
        process.control.run_once([flow.flow for flow in flows if flow.error is None])
    code = _summary(flows, once=once)
    for paused, why in process.config.paused.items():
        say(f"{paused}: not run; {why}")
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


def _check_options(*, once: bool, is_watched: bool) -> None:
    if once and is_watched:
        raise click.UsageError("--watch: a copy with --once ends; it does not follow its file.")


def _local_master(config: MirrorMakerConfig) -> str:
    return f"local[{max(_LOCAL_SLOTS, _local_slots(config))}]"


def _local_slots(config: MirrorMakerConfig) -> int:
    """Return the slots of a local Spark: for every flow the same number, its cores or the largest `tasks.max`."""
    cores = os.cpu_count() or 1
    wanted = [config.settings(flow)[keys.TASKS_MAX] for flow in config.flows]
    return len(config.flows) * max(*(tasks_max or max(1, cores // len(config.flows)) for tasks_max in wanted), 1)


def _largest_buffer(config: MirrorMakerConfig) -> int:
    """Return the most memory that a task of any flow takes for its buffers."""
    return max((config.settings(flow)[keys.TASK_BUFFER_BYTES] for flow in config.flows), default=0)


def _watch(
    process: MirrorProcess, screen: Screen, stopping: threading.Event, driver: SparkDriver, reload: ConfigReload
) -> None:
    """Show the flows and apply changes of the file until all flows have ended, none can begin, or a signal comes.

    A flow that has failed for good does not stop the others; the exit code reports it.
    """
    while not stopping.wait(_POLL_S) and not process.is_over:
        screen.show([flow.status for flow in process.flows.values()])
        if driver.error is not None:
            raise EngineError(str(driver.error))
        if process.cannot_run:
            return
        reload.poll()
        process.look_after()
    screen.show([flow.status for flow in process.flows.values()])
    if stopping.is_set():
        log.info("Stopping: flushing and committing source offsets ...")


def _end(engine: SparkEngine, process: MirrorProcess) -> None:
    started = time.monotonic()
    process.stop()
    engine.close()
    log.debug("stopped in %.1f s", time.monotonic() - started)


def _summary(flows: list[SourceFlow], *, once: bool) -> int:
    """Print the result of each flow; return the exit code."""
    code = 0
    for flow in flows:
        if flow.error is not None:
            say(f"{flow.flow}: {flow.error}", is_error=True)
            code = EXIT_START
            continue
        _print_copied(flow.status)
        for failure in flow.status.failures:
            say(str(failure), is_error=True)
            code = code or EXIT_INCOMPLETE
        for step, issues in flow.status.issues.items():
            for issue in issues:
                say(f"{flow.flow}: {issue}", is_error=True)
            # A flow that keeps running completes its other steps later. With `--once` there is no later: a migration
            # would lack checkpoints, configs or ACLs.
            if once or prevents_copying(step):
                code = code or EXIT_INCOMPLETE
    return code


def _print_copied(status: FlowStatus) -> None:
    counts = status.counts
    topics = counted(len(status.rows()), "topic")
    copied = f"{counted(counts.records, 'record')}, {format_bytes(counts.bytes)}"
    say(f"{status.flow}: {status.state.lower()}, {copied}, {topics}")
    if counts.lost_offsets:
        say(f"{status.flow}: {_were(counts.lost_offsets, 'offset')} gone from the source before being copied")
    if counts.cut_offsets:
        say(
            f"{status.flow}: {_were(counts.cut_offsets, 'offset')} cut off at the source after being copied;"
            " the target keeps what was copied"
        )
    if counts.skipped_records:
        say(
            f"{status.flow}: {_were(counts.skipped_records, 'record')} too large for the target and left out"
            " (errors.tolerance=all)"
        )


def _were(number: int, noun: str) -> str:
    return f"{counted(number, noun)} {'was' if number == 1 else 'were'}"
