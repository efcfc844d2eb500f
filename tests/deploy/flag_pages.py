"""The page of the reference that lists all flags.

Written anew by `python -m tests.deploy.flag_pages > docs/reference/node-flags.md`; a test compares.
"""

from __future__ import annotations

import sys

from plimsoll.cli.nodes.run import flag_rows

_HEAD = """\
# Flags of the node autoscaler

All flags of `plimsoll run nodes`, in the order of the alphabet, as `plimsoll run nodes --list-flags` prints them. Names
and meanings are Cluster Autoscaler's where it has them. Durations are written as in Go (`90s`, `1h30m`); lists by
commas or by repeating the flag. The same names, without dashes, are keys of the file of `--config`, of the ConfigMap
that `plimsoll nodes configure` writes, and of `options` in scenario files.

*accepted* means: read, warned about once at the start, and without effect, for the reason given. A flag that is not
listed is refused, and the nearest name suggested.

| flag | value | default | |
|---|---|---|---|
"""


def page() -> str:
    return _HEAD + "".join(_row(*row) for row in flag_rows())


def _row(*row: str) -> str:
    flag, kind, default, state, aliases, note = row
    told = [f"also `{one}`" for one in aliases.split(", ") if one]
    if state != "implemented":
        told.append(f"*{state}*: {note}")
    shown = "" if default == "-" else f"`{default}`"
    return f"| `{flag}` | {kind.replace('|', 'or')} | {shown} | {'; '.join(told)} |\n"


if __name__ == "__main__":
    sys.stdout.write(page())
