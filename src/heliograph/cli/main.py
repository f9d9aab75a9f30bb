"""`heliograph`: the group of all commands, and the one place where an error becomes a sentence and an exit code."""

from __future__ import annotations

import sys

import click

from heliograph import __version__
from heliograph.cli.acls import acls
from heliograph.cli.connectors import connectors
from heliograph.cli.convert import convert_command
from heliograph.cli.demo import demo
from heliograph.cli.deploy import deploy, redeploy, status, undeploy
from heliograph.cli.explain import explain
from heliograph.cli.failover import failback, failover
from heliograph.cli.groups import groups
from heliograph.cli.kafka import kafka
from heliograph.cli.plan import plan
from heliograph.cli.run import run
from heliograph.cli.translate import translate
from heliograph.cli.validate import validate
from heliograph.cli.worker import worker
from heliograph.engine.crash_report import trace_of
from heliograph.errors import ConfigError, HeliographError, RestError

EXIT_FAULT = 1
EXIT_REFUSED = 1  # by a Connect worker that answered
EXIT_CONFIG = 2  # what the user wrote
EXIT_START = 3  # what the world did not let us begin, as in connect-mirror-maker.sh


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="heliograph")
def cli() -> None:
    """Kafka MirrorMaker 2 in Python, on Spark."""


cli.add_command(run)
cli.add_command(worker)
cli.add_command(groups)
cli.add_command(translate)
cli.add_command(failover)
cli.add_command(failback)
cli.add_command(plan)
cli.add_command(validate)
cli.add_command(explain)
cli.add_command(acls)
cli.add_command(deploy)
cli.add_command(undeploy)
cli.add_command(redeploy)
cli.add_command(status)
cli.add_command(connectors)
cli.add_command(convert_command)
cli.add_command(kafka)
cli.add_command(demo)


def main() -> None:
    """Run a command; errors raised on purpose are told without a stack trace."""
    try:
        cli()
    except HeliographError as error:
        problems = error.problems if isinstance(error, ConfigError) else (str(error),)
        for problem in problems:
            click.echo(f"error: {problem}", err=True)
        for warning in error.warnings if isinstance(error, ConfigError) else ():
            click.echo(f"warning: {warning}", err=True)
        sys.exit(_exit_code(error))
    except Exception as error:  # noqa: BLE001  (a fault of ours; its trace is for a report, which people publish)
        click.echo(trace_of(error), err=True)
        sys.exit(EXIT_FAULT)


def _exit_code(error: HeliographError) -> int:
    if isinstance(error, ConfigError):
        return EXIT_CONFIG
    return EXIT_REFUSED if isinstance(error, RestError) and error.status else EXIT_START
