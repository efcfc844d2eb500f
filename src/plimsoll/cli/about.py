"""`plimsoll version` and `plimsoll completion`."""

from __future__ import annotations

import platform
from enum import Enum
from typing import Annotated

import typer

import plimsoll
from plimsoll.cli.shared.output import Output, OutputOption, echo_value


def version(output: OutputOption = Output.TABLE) -> None:
    """
    Print the version of Plimsoll, the commit it is from, and the Python it runs on.

    \b
    Examples:
      plimsoll version
      plimsoll version -o json
    """
    from plimsoll.cli.build_information import read_build_information

    build = read_build_information()
    versions = {
        "plimsoll": plimsoll.__version__,
        "commit": build.commit,
        "builtAt": build.built_at,
        "variant": build.variant,
        "python": platform.python_version(),
        "platform": platform.machine(),
    }
    match output:
        case Output.TABLE:
            built = f", built {build.built_at}" if build.built_at else ""
            origin = f"commit {build.commit}{built}, Python {versions['python']}, {versions['platform']}"
            typer.echo(f"plimsoll {versions['plimsoll']} ({origin})")
        case Output.NAME:
            typer.echo(versions["plimsoll"])
        case _:
            echo_value(versions, output)


class Shell(Enum):
    """Shells with completion scripts."""

    BASH = "bash"
    ZSH = "zsh"
    FISH = "fish"


def completion(shell: Annotated[Shell, typer.Argument(help="The shell.")]) -> None:
    """
    Print a script that completes commands and options in your shell.

    \b
    Examples:
      source <(plimsoll completion bash)
      plimsoll completion zsh > ~/.zfunc/_plimsoll
      plimsoll completion fish > ~/.config/fish/completions/plimsoll.fish
    """
    from typer.completion import get_completion_script  # type: ignore[attr-defined]  # typer lists no exports there

    typer.echo(get_completion_script(prog_name="plimsoll", complete_var="_PLIMSOLL_COMPLETE", shell=shell.value))
