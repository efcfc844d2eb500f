"""The command line's door: one grammar, one place where errors become exit codes.

Commands import what they need inside their functions, so that `--help` and completion stay instant.

Exit codes: 0 done, 1 the answer is no, 2 wrong usage or unreadable input, 3 not enough data, 4 a server could not be
reached, 70 a mistake of ours. Errors go to stderr; with `-o json` as one JSON object.
"""

from __future__ import annotations

import itertools
import os
import sys
import traceback
from typing import Annotated, NoReturn

import typer

from plimsoll.cli import about
from plimsoll.cli.commands import apiserver, doctor, pause, run, simulate, up, validate
from plimsoll.cli.journal import journal, why
from plimsoll.cli.nodes import nodes, plan, recording, requests
from plimsoll.cli.nodes import run as run_nodes
from plimsoll.cli.tidb import tidb
from plimsoll.core.errors import PlimsollError

INTERRUPTED = 130
OUR_MISTAKE = 70

app = typer.Typer(
    name="plimsoll",
    add_completion=False,
    pretty_exceptions_enable=False,
    # rich's help costs as much again as all the rest; nobody sees its colours through a pipe.
    rich_markup_mode="rich" if sys.stdout is not None and sys.stdout.isatty() else None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


@app.callback(invoke_without_command=True)
def plimsoll(
    context: typer.Context,
    version: Annotated[bool, typer.Option("--version", help="Print the version and end.")] = False,
) -> None:
    """
    Plimsoll keeps Kubernetes capacity at the line: clusters, nodes, groups of pods, brokers, instances.

    \b
    Examples:
      plimsoll up
      plimsoll validate -f request.yaml
      plimsoll validate --help
    """
    if version and context.invoked_subcommand is None:
        about.version()


app.command(name="up", short_help="Run a simulated cluster on this machine.")(up.up)
app.command(name="apiserver", short_help="Run only the embedded Kubernetes API server.")(apiserver.apiserver)
app.add_typer(run.app, name="run", short_help="Run controllers against a cluster.")
app.command(name="plan", short_help="Plan nodes for pending pods.")(plan.plan)
app.command(name="simulate", short_help="Run a scenario in virtual time.")(simulate.simulate)
app.command(name="validate", short_help="Tell whether manifests are valid.")(validate.validate)
app.command(name="why", short_help="Tell what was decided about something, and why.")(why.why)
app.command(name="journal", short_help="List what was decided lately.")(journal.journal)
app.command(
    name="record", short_help="Write down what the node autoscaler sees.", context_settings=run_nodes.PASS_THROUGH_FLAGS
)(recording.record)
app.command(name="replay", short_help="Make the plan of a recording again.")(recording.replay)
app.add_typer(nodes.app, name="nodes", short_help="The node autoscaler: its state, its options.")
app.add_typer(requests.app, name="requests", short_help="ProvisioningRequests: where they stand, and why.")
app.add_typer(tidb.app, name="tidb", short_help="TiDB clusters: how many instances of which size.")
app.command(name="pause", short_help="Pull the brake: plan and tell, do nothing.")(pause.pause)
app.command(name="resume", short_help="Let go of the brake.")(pause.resume)
app.command(name="doctor", short_help="Tell whether a cluster can be worked in.")(doctor.doctor)
app.command(name="version", short_help="Print the version.")(about.version)
app.command(name="completion", short_help="Print a completion script.")(about.completion)


def main(arguments: list[str] | None = None) -> NoReturn:
    """Run a command and end the process with its exit code."""
    given = (sys.argv[1:] if arguments is None else arguments) or ["--help"]
    if "_PLIMSOLL_COMPLETE" in os.environ:
        _teach_shells()
    try:
        code = app(given, prog_name="plimsoll", standalone_mode=False)
    except PlimsollError as error:
        told = {"path": getattr(error, "path", ""), "hint": getattr(error, "hint", "")}
        code = _complain(str(error), code=error.exit_code, given=given, **told)
    except typer.Exit as ended:
        code = ended.exit_code
    except typer.TyperException as error:
        code = _complain(_told(error), code=2, given=given, hint=_hint(given))
    except (KeyboardInterrupt, typer.Abort):
        code = INTERRUPTED
    except BrokenPipeError:  # `plimsoll … | head` is no error
        sys.stderr.close()
        code = 0
    except OSError as error:
        code = _complain(f"cannot write the answer: {error.strerror}", code=2, given=given)
    except Exception:  # noqa: BLE001 - a bug must not look like "the answer is no", which is exit code 1
        traceback.print_exc()
        code = _complain(
            "this is a mistake in Plimsoll; please report it with the lines above", code=OUR_MISTAKE, given=given
        )
    sys.exit(code if isinstance(code, int) else 0)


def _teach_shells() -> None:
    """A shell asks what comes next: typer's answers are installed on request only, we have our own command for it."""
    from typer.completion import completion_init  # type: ignore[attr-defined]  # typer lists no exports there

    completion_init()


def _complain(message: str, *, code: int, given: list[str], path: str = "", hint: str = "") -> int:
    if _wants_json(given):
        import json

        error = {"message": message, "path": path, "hint": hint, "exitCode": code}
        typer.echo(json.dumps({"error": {key: value for key, value in error.items() if value != ""}}), err=True)
    else:
        typer.echo(f"error: {message}" + (f"\n{hint}" if hint else ""), err=True)
    return code


def _told(error: typer.TyperException) -> str:
    """What was wrong with the usage, on one line."""
    tell = getattr(error, "format_message", None)
    return " ".join(str(tell() if callable(tell) else error).replace("Value error, ", "").split())


def _hint(given: list[str]) -> str:
    known = {command.name for command in app.registered_commands} | {group.name for group in app.registered_groups}
    if given and given[0] in known:
        return f"plimsoll {given[0]} --help tells how it is used"
    return "plimsoll --help tells what there is"


def _wants_json(given: list[str]) -> bool:
    """Read from the bare words, because the complaint may be that they cannot be parsed."""
    pairs = itertools.pairwise([*given, ""])
    return any(
        word in {"-ojson", "--output=json"} or (word in {"-o", "--output"} and following == "json")
        for word, following in pairs
    )
