"""`heliograph`: the group of all commands, and the one place where an error becomes a sentence and an exit code.

A command is imported when it is called for: until then only this module has to be, which is why `run` and `worker` can
be stopped from their first moments on.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module

import click

from heliograph import __version__
from heliograph.cli.signals import leave_on_signals
from heliograph.config.resolve.suggestions import did_you_mean
from heliograph.diagnostics import problem
from heliograph.errors import ConfigError, HeliographError, RestError

EXIT_FAULT = 1
EXIT_REFUSED = 1  # by a Connect worker that answered
EXIT_CONFIG = 2  # what the user wrote
EXIT_START = 3  # what the world did not let us begin, as in connect-mirror-maker.sh
_UNTIL_STOPPED = frozenset({"run", "worker"})
_WRITTEN_BY_OTHERS = 0o022  # bits that no file and folder of ours gets: jars and programs are among them
# The name of each command: its module and the function there.
_COMMANDS = {
    "run": ("run", "run"),
    "worker": ("worker", "worker"),
    "groups": ("groups", "groups"),
    "translate": ("groups", "translate"),
    "failover": ("failover", "failover"),
    "failback": ("failover", "failback"),
    "plan": ("plan", "plan"),
    "validate": ("validate", "validate"),
    "explain": ("explain", "explain"),
    "acls": ("acls", "acls"),
    "deploy": ("connect", "deploy"),
    "undeploy": ("connect", "undeploy"),
    "redeploy": ("connect", "redeploy"),
    "status": ("connect", "status"),
    "connectors": ("connect", "connectors"),
    "convert": ("convert", "convert_command"),
    "kafka": ("kafka", "kafka"),
    "demo": ("demo", "demo"),
}


class _Commands(click.Group):
    """Commands that are imported when they are called for."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002  (click's signature)
        """Every name, sorted."""
        return sorted(_COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        """The command of a name."""
        if cmd_name not in _COMMANDS:
            return None
        module, name = _COMMANDS[cmd_name]
        command: click.Command = getattr(import_module(f"heliograph.cli.commands.{module}"), name)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """As click does, with the command that may be meant."""
        try:
            return super().resolve_command(ctx, args)
        except click.UsageError as error:
            raise click.UsageError(error.message + did_you_mean(args[0], _COMMANDS), ctx) from None


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, prog_name="heliograph")
def cli() -> None:
    """Kafka MirrorMaker 2 in Python, on Spark."""


def main() -> None:
    """Run a command; errors raised on purpose are told without a stack trace."""
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
    except Exception as error:  # noqa: BLE001  (a fault of ours; its trace is for a report, which people publish)
        from heliograph.config.resolve.redaction import trace_of  # noqa: PLC0415  (as the commands: not before it is needed)

        click.echo(trace_of(error), err=True)
        sys.exit(EXIT_FAULT)


def _exit_code(error: HeliographError) -> int:
    if isinstance(error, ConfigError):
        return EXIT_CONFIG
    return EXIT_REFUSED if isinstance(error, RestError) and error.status else EXIT_START
