"""The entry point of the command line: all commands, and the mapping of errors to exit codes.

Commands import what they need inside their functions, so that `--help` and completion stay fast.

Exit codes: 0 success, 1 negative result, 2 wrong usage or unreadable input, 3 not enough data, 4 server not reachable,
70 internal error. Errors go to stderr; with `-o json` as one JSON object.
"""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from functools import cache
from typing import TYPE_CHECKING, Annotated, Any, NoReturn

import typer
import typer.main
from typer.core import TyperGroup

from plimsoll.cli import about
from plimsoll.cli.commands import apiserver, console, definitions, doctor, pause, run, simulate, tour, up, validate
from plimsoll.cli.fleet import fleet
from plimsoll.cli.journal import journal, why
from plimsoll.cli.kafka import kafka
from plimsoll.cli.nodes import nodes, plan, recording, requests, whatif
from plimsoll.cli.nodes import run as run_nodes
from plimsoll.cli.tidb import tidb
from plimsoll.core.errors import PlimsollError

if TYPE_CHECKING:
    from collections.abc import Callable


INTERRUPTED = 130
INTERNAL_ERROR = 70

ORDER = (
    *("up", "tour", "console", "why", "journal", "plan", "whatif", "simulate", "validate", "run", "doctor"),
    *("pause", "resume", "nodes", "requests", "kafka", "tidb", "fleet", "record", "replay", "definitions"),
    *("apiserver", "version", "completion"),
)
"""The commands in help: what a newcomer needs first, then the subsystems, then the rest."""


class OrderedCommands(TyperGroup):
    """Lists commands and groups of commands in one order."""

    def list_commands(self, ctx: Any) -> list[str]:
        return sorted(super().list_commands(ctx), key=ORDER.index)


app = typer.Typer(
    name="plimsoll",
    cls=OrderedCommands,
    add_completion=False,
    pretty_exceptions_enable=False,
    # Help with rich takes twice as long to start, and its colours are useless in a pipe.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def plimsoll(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and exit.")] = False,
) -> None:
    """
    Plimsoll manages Kubernetes capacity: nodes, groups of pods, Kafka brokers and TiDB instances.

    \b
    Examples:
      plimsoll up
      plimsoll run nodes --dry-run --once
      plimsoll plan -f examples/plans/mixed.yaml
      plimsoll why pod/default/web-0
      plimsoll validate -f request.yaml
    """
    if version and context.invoked_subcommand is None:
        about.version()


app.command(name="up", short_help="Run a simulated cluster on this machine.")(up.up)
app.command(name="tour", short_help="Show the whole story on a world of its own, in minutes or seconds.")(tour.tour)
app.command(name="apiserver", short_help="Run only the embedded Kubernetes API server.")(apiserver.apiserver)
app.add_typer(run.app, name="run", short_help="Run controllers against a cluster.")
app.command(name="plan", short_help="Plan nodes for pending pods, from files.")(plan.plan)
app.command(name="whatif", short_help="Compare policies on the same cluster, from files.")(whatif.whatif)
app.command(name="simulate", short_help="Run a scenario in virtual time.")(simulate.simulate)
app.command(name="validate", short_help="Validate manifests.")(validate.validate)
app.command(name="why", short_help="Explain decisions about an object.")(why.why)
app.command(name="console", short_help="Show what happens in a cluster, and why, in a browser.")(console.console)
app.command(name="journal", short_help="List recent decisions.")(journal.journal)
app.command(
    name="record", short_help="Record the input of the node autoscaler.", context_settings=run_nodes.PASS_THROUGH_FLAGS
)(recording.record)
app.command(name="replay", short_help="Replay a recording and compare the plan.")(recording.replay)
app.add_typer(nodes.app, name="nodes", short_help="Status and options of the node autoscaler.")
app.add_typer(requests.app, name="requests", short_help="Status of ProvisioningRequests.")
app.add_typer(kafka.app, name="kafka", short_help="Status, plans and rebalances of a Kafka cluster.")
app.add_typer(tidb.app, name="tidb", short_help="Plan, validate and simulate TiDB auto-scaling.")
app.add_typer(fleet.app, name="fleet", short_help="Evaluate and configure a fleet of clusters.")
app.command(name="pause", short_help="Pause all controllers: they plan and report but do not act.")(pause.pause)
app.command(name="resume", short_help="Resume paused controllers.")(pause.resume)
app.command(name="doctor", short_help="Check whether a cluster has what the controllers need.")(doctor.doctor)
app.add_typer(
    definitions.app, name="definitions", short_help="The CustomResourceDefinitions that this program carries."
)
app.command(name="version", short_help="Print the version.")(about.version)
app.command(name="completion", short_help="Print a shell completion script.")(about.completion)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and exit the process with its exit code."""
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if "_PLIMSOLL_COMPLETE" in os.environ:
        _initialize_completion()
    try:
        code = _build_command()(given, prog_name="plimsoll", standalone_mode=False)
        if sys.stdout is not None:
            sys.stdout.flush()
    except PlimsollError as error:
        details = {"path": getattr(error, "path", ""), "hint": getattr(error, "hint", "")}
        code = _report_error(str(error), code=error.exit_code, given=given, **details)
    except typer.Exit as ended:
        code = ended.exit_code
    except typer.TyperException as error:
        code = _report_error(_format_usage_error(error), code=2, given=given, hint=_format_hint(given))
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:
        code = _end_output()
    except SystemExit as ended:  # typer ends the process so if the reader of the output is gone
        code = _end_output() if isinstance(ended.__context__, BrokenPipeError) else ended.code
    except OSError as error:
        code = _report_error(f"cannot write the output: {error.strerror}", code=2, given=given)
    except Exception:  # noqa: BLE001 - a bug must not look like "the answer is no", which is exit code 1
        traceback.print_exc()
        code = _report_error("internal error; please report it with the lines above", code=INTERNAL_ERROR, given=given)
    sys.exit(code if isinstance(code, int) else 0)


@cache
def _build_command() -> Callable[..., object]:
    """All commands, built once per process: typer reads the signatures of all functions for it."""
    return typer.main.get_command(app)


def _end_output() -> int:
    """The reader of the output has enough: `plimsoll … | head` is not an error. What is left to flush goes nowhere."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return 0


def _initialize_completion() -> None:
    """Answer a completion request. typer installs its completion only on demand, because we have our own command."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # typer lists no exports there

    completion_init()


def _report_error(message: str, *, code: int, given: list[str], path: str = "", hint: str = "") -> int:
    if _wants_json(given):
        import json

        error = {"message": message, "path": path, "hint": hint, "exitCode": code}
        typer.echo(json.dumps({"error": {key: value for key, value in error.items() if value != ""}}), err=True)
    else:
        typer.echo(f"error: {message}" + (f"\n{hint}" if hint else ""), err=True)
    return code


def _format_usage_error(error: typer.TyperException) -> str:
    """The usage error on one line."""
    format_message = getattr(error, "format_message", None)
    return " ".join(str(format_message() if callable(format_message) else error).replace("Value error, ", "").split())


def _format_hint(given: list[str]) -> str:
    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    groups = {group.name: group.typer_instance for group in app.registered_groups}
    group = groups.get(given[0]) if given else None
    if group is not None and given[1:] and given[1] in {command.name for command in group.registered_commands}:
        return f"see plimsoll {given[0]} {given[1]} --help"
    if given and given[0] in known:
        return f"see plimsoll {given[0]} --help"
    return "see plimsoll --help"


def _wants_json(given: list[str]) -> bool:
    """Whether JSON is requested. Reads the raw words, because the error may be that they cannot be parsed."""
    pairs = itertools.pairwise([*given, ""])
    return any(
        word in {"-ojson", "--output=json"} or (word in {"-o", "--output"} and following == "json")
        for word, following in pairs
    )
