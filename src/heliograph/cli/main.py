"""The `heliograph` command: the list of commands, and the one place that turns an error into an exit code.

A command's module is imported when the command runs. Until then only this module is loaded, so `--help` is quick, and
SIGTERM stops `run` and `worker` cleanly from the start.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import NamedTuple

import click

from heliograph import __version__
from heliograph.cli.signals import leave_on_signals
from heliograph.diagnostics import problem
from heliograph.errors import ConfigError, HeliographError, RestError

EXIT_FAULT = 1
EXIT_REFUSED = 1  # a Connect worker refused the request
EXIT_CONFIG = 2  # a mistake in a file or an option
EXIT_START = 3  # a cluster, Spark or Java could not be used; as in connect-mirror-maker.sh
_UNTIL_STOPPED = frozenset({"run", "worker"})
_WRITTEN_BY_OTHERS = 0o022  # mode bits that no file or folder of ours gets, since jars and programs are among them


class _Entry(NamedTuple):
    """A command in the list: its summary, its module in `cli`, and its function there."""

    summary: str
    module: str
    function: str


# The groups of `heliograph --help`, and in each the commands by name. The summaries stand here, not in the modules, so
# that the list needs none of them.
_GROUPS: dict[str, dict[str, _Entry]] = {
    "Replicate": {
        "run": _Entry("Replicate with an MM2 properties file or a resource.", "commands.run", "run"),
        "worker": _Entry("Run MM2 connectors as a worker of a Connect cluster.", "commands.worker", "worker"),
    },
    "Watch a running process": {
        "flows": _Entry("Show flows, their lag, and partitions that stand still.", "rest_commands.flows", "flows"),
        "restart": _Entry("Restart a flow, a topic or a partition.", "rest_commands.restart", "restart"),
    },
    "Look for lost records": {
        "losses": _Entry("Show records that source and target do not both have.", "commands.losses", "losses"),
    },
    "Check a configuration": {
        "validate": _Entry("Check files without connecting to a cluster.", "commands.validate", "validate"),
        "explain": _Entry("Show where the value of a key comes from.", "commands.explain", "explain"),
        "plan": _Entry("Show what a run would create, alter, copy and skip.", "commands.plan", "plan"),
        "acls": _Entry("Print the ACLs that a configuration needs.", "commands.acls", "acls"),
        "convert": _Entry(
            "Convert between properties, resource and connector JSON.", "commands.convert", "convert_command"
        ),
    },
    "Move consumer groups": {
        "groups": _Entry("Show the offsets of groups on both clusters.", "commands.groups", "groups"),
        "translate": _Entry("Translate a group's offsets through checkpoints.", "commands.groups", "translate"),
        "failover": _Entry("Set the offsets of groups on the target.", "commands.failover", "failover"),
        "failback": _Entry("Set the offsets of groups on the source again.", "commands.failover", "failback"),
    },
    "Manage Connect": {
        "deploy": _Entry("Start the MM2 connectors of a source cluster.", "rest_commands.connect", "deploy"),
        "redeploy": _Entry("Remove the connectors and start them again.", "rest_commands.connect", "redeploy"),
        "undeploy": _Entry("Remove the connectors of a source cluster.", "rest_commands.connect", "undeploy"),
        "status": _Entry("Show the state of the connectors of a source cluster.", "rest_commands.connect", "status"),
        "connectors": _Entry("List all connectors of a Connect cluster.", "rest_commands.connect", "connectors"),
    },
    "Prepare a Spark cluster": {
        "pack": _Entry("Pack Python and all packages for executors.", "spark_commands.pack", "pack"),
    },
    "Kafka on this machine": {
        "demo": _Entry("Replicate, stop the source, continue on the target.", "commands.demo", "demo"),
        "kafka": _Entry("Start, stop, use and remove Kafka clusters.", "commands.kafka", "kafka"),
    },
}
_COMMANDS = {name: entry for commands in _GROUPS.values() for name, entry in commands.items()}


class _Commands(click.Group):
    """Commands in groups, each imported when it runs."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """Return every name, in the order of the list."""
        return list(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """Import the command of a name."""
        entry = _COMMANDS.get(cmd_name)
        if entry is None:
            return None
        command: click.Command = getattr(import_module(f"heliograph.cli.{entry.module}"), entry.function)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """Write the groups without importing a command."""
        width = max(map(len, _COMMANDS))
        for title, commands in _GROUPS.items():
            with formatter.section(title):
                formatter.write_dl([(f"{name:{width}}", entry.summary) for name, entry in commands.items()])

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Do as click does, and suggest the nearest command."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            from heliograph.config.resolve.suggestions import did_you_mean  # noqa: PLC0415  (only a mistyped name needs it)

            raise click.UsageError(error.message + did_you_mean(args[0], _COMMANDS), ctx) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="heliograph")
def cli() -> None:
    """Kafka MirrorMaker 2 in Python, on Spark."""


def main() -> None:
    """Run a command; print errors raised on purpose as sentences, without a stack trace."""
    os.umask(os.umask(_WRITTEN_BY_OTHERS) | _WRITTEN_BY_OTHERS)
    if _UNTIL_STOPPED.intersection(sys.argv[1:2]):
        leave_on_signals()
    try:
        cli()
    except HeliographError as error:
        found = error.diagnostics if isinstance(error, ConfigError) else (problem(str(error)),)
        for each in found:
            click.echo(f"{each.severity.name.lower()}: {each}", err=True)
        sys.exit(_exit_code(error))
    except Exception as error:  # noqa: BLE001  (a fault of ours; bug reports are published, so the trace is redacted)
        from heliograph.config.resolve.redaction import trace_of  # noqa: PLC0415  (only a fault needs it)

        click.echo(trace_of(error), err=True)
        sys.exit(EXIT_FAULT)


def _exit_code(error: HeliographError) -> int:
    if isinstance(error, ConfigError):
        return EXIT_CONFIG
    return EXIT_REFUSED if isinstance(error, RestError) and error.status else EXIT_START
