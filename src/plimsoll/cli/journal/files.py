"""Shared by the commands that read the journal: its location, and times."""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from plimsoll.journal.journal_file import JournalFile

DEFAULT_DATA = ".plimsoll"
KUBECONFIG_FILE = "kubeconfig"
DataOption = Annotated[
    str,
    typer.Option(
        "--data", help=f"Directory of the journal. Default: ./{DEFAULT_DATA}.", metavar="DIR", show_default=False
    ),
]
ReadDataOption = Annotated[
    str,
    typer.Option(
        "--data",
        help=f"Directory of the journal. Default: ./{DEFAULT_DATA}, or that of $KUBECONFIG if it holds one.",
        metavar="DIR",
        show_default=False,
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalPlace:
    """Where a command looks for the journal."""

    path: Path
    server: str = ""
    """The API server of the cluster that the journal is of, where it is known not to be that of $KUBECONFIG."""
    chosen: str = ""
    """The API server of $KUBECONFIG then."""

    @property
    def is_other_cluster(self) -> bool:
        return bool(self.server)

    def describe_other(self) -> str:
        """Which cluster the journal is of, and which one the user has chosen."""
        return f"the journal in {self.path.parent} is of {self.server}, and $KUBECONFIG names {self.chosen}"


def find_journal(data: str) -> JournalPlace:
    """The journal in `data`; empty: in ./.plimsoll, or beside the kubeconfig that $KUBECONFIG names.

    `plimsoll up` and `plimsoll kafka try` write the kubeconfig of their cluster into the directory of the journal.
    """
    import os

    from plimsoll.journal.journal_file import JOURNAL_FILE

    place = JournalPlace(path=Path(data or DEFAULT_DATA) / JOURNAL_FILE)
    chosen = next(filter(os.path.isfile, os.environ.get("KUBECONFIG", "").split(os.pathsep)), "")
    own = place.path.with_name(KUBECONFIG_FILE)
    is_of_no_cluster = place.path.exists() and not own.exists()
    if data or not chosen or is_of_no_cluster or (own.exists() and own.samefile(chosen)):
        return place
    beside = Path(chosen).with_name(JOURNAL_FILE)
    if beside.exists() and Path(chosen).name == KUBECONFIG_FILE:
        return JournalPlace(path=beside)
    server, wanted = _read_server(str(own)), _read_server("")
    if not place.path.exists() or not server or not wanted or server == wanted:
        return place
    return JournalPlace(path=place.path, server=server, chosen=wanted)


def _read_server(kubeconfig: str) -> str:
    """The API server that a kubeconfig names; empty: $KUBECONFIG. Empty if it cannot be read."""
    from plimsoll.cli.shared.connection import Connection
    from plimsoll.core.errors import PlimsollError
    from plimsoll.runtime.clocks import RealClock

    try:
        return Connection(kubeconfig=kubeconfig).build_access(clock=RealClock()).server
    except PlimsollError:
        return ""


@contextmanager
def open_journal(data: str) -> Iterator[JournalFile]:
    """Open the journal read-only, while it may still be written. Raises `NothingKnown` if there is none."""
    from plimsoll.journal.errors import NothingKnown
    from plimsoll.journal.journal_file import JournalFile

    path = find_journal(data).path
    if not path.exists():
        raise NothingKnown(
            f"there is no journal in {path.parent}",
            hint="plimsoll up and plimsoll run nodes --data DIR write one; pass its directory with --data, "
            "or ask the cluster: plimsoll why KIND/NAME --kubeconfig FILE",
        )
    journal = JournalFile(path, read_only=True)
    try:
        yield journal
    finally:
        journal.close()


def read_time_or_age(text: str, *, now: datetime, path: str) -> datetime | None:
    """Read `1h` (ago), or an RFC 3339 time; None if nothing was given."""
    from datetime import timedelta

    import msgspec

    from plimsoll.core.value_parsing import read_duration_s
    from plimsoll.objects.api.meta import Time

    if not text:
        return None
    ago_s = read_duration_s(text)
    try:
        return msgspec.convert(text, Time) if ago_s is None else now - timedelta(seconds=ago_s)
    except (msgspec.ValidationError, OverflowError):
        problem = f'{text!r} is neither a time ago like "90s", "15m" or "36h" nor a time like "2026-01-31T12:00:00Z"'
        raise InvalidInput(problem, path=path) from None
