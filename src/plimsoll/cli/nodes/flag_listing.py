"""The flags of the node autoscaler as people read them: `--help`, `--list-flags` and docs/reference/node-flags.md.

All three are made from one table, `nodes.config.options.FLAGS`.
"""

from __future__ import annotations

import sys
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from typer.core import TyperCommand

from plimsoll.cli.shared.output import Output, Table, echo_value

if TYPE_CHECKING:
    from plimsoll.nodes.config.flags import Flag


@dataclass(frozen=True, slots=True, kw_only=True)
class FlagRow:
    """One flag, everything as text."""

    flag: str
    kind: str
    default: str
    """As one would type it; "-" for none."""
    state: str
    aliases: str
    description: str
    note: str
    """Why an accepted flag has no effect."""


def list_flag_rows() -> list[FlagRow]:
    """Every flag, in alphabetical order."""
    from plimsoll.nodes.config.options import FLAGS

    return [
        FlagRow(
            flag=f"--{flag.name}",
            kind=flag.kind,
            default=_format_default(flag),
            state=flag.state.value,
            aliases=", ".join(f"--{alias}" for alias in flag.aliases),
            description=flag.description,
            note=flag.note,
        )
        for flag in FLAGS.values()
    ]


def list_flags(output: Output) -> None:
    rows = list_flag_rows()
    if output is not Output.TABLE:
        echo_value([asdict(row) for row in rows], output)
        return
    cells = [(row.flag, row.kind, row.default, row.state, row.description) for row in rows]
    for line in Table(("FLAG", "KIND", "DEFAULT", "STATE", "DESCRIPTION"), cells).format_lines():
        sys.stdout.write(f"{line}\n")


class NodeFlagsCommand(TyperCommand):
    """A command whose `--help` also describes every flag of the node autoscaler."""

    def format_help(self, ctx: Any, formatter: Any) -> None:
        super().format_help(ctx, formatter)
        with formatter.section("Flags of the node autoscaler"):
            formatter.write_dl([(f"{row.flag} {row.kind.upper()}", _describe(row)) for row in list_flag_rows()])


def _describe(row: FlagRow) -> str:
    default = "" if row.default == "-" else f" [default: {row.default}]"
    effect = f" Accepted without effect: {row.note}." if row.note else ""
    return f"{row.description}{effect}{default}"


def _format_default(flag: Flag) -> str:
    from plimsoll.core.durations import format_duration

    default = flag.default
    if default is None or default in ((), ""):
        return "-"
    if isinstance(default, bool):
        return str(default).lower()
    if isinstance(default, tuple):
        return ",".join(map(str, default))
    return format_duration(default) if flag.kind == "duration" else str(getattr(default, "value", default))
