"""Progress of a command on stderr, once it has taken longer than a person waits without wondering."""

from __future__ import annotations

import asyncio
import sys
from typing import TYPE_CHECKING, Final, Self

import typer

from plimsoll.cli.shared.output import uses_colour

if TYPE_CHECKING:
    from types import TracebackType

    from rich.status import Status

PATIENCE_S: Final = 2.0


class Progress:
    """`with Progress("checking …") as progress:` inside a running loop; `progress.step("…")` names the next step.

    Nothing is printed in the first two seconds, then the present step and each further one: as a spinner on a terminal,
    otherwise one line per step.
    """

    def __init__(self, title: str, *, is_silent: bool = False) -> None:
        self._title = title
        self._is_silent = is_silent
        self._step = ""
        self._is_visible = False
        self._timer: asyncio.TimerHandle | None = None
        self._spinner: Status | None = None

    def __enter__(self) -> Self:
        if not self._is_silent:
            self._timer = asyncio.get_running_loop().call_later(PATIENCE_S, self._show)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._timer is not None:
            self._timer.cancel()
        if self._spinner is not None:
            self._spinner.stop()

    def step(self, text: str) -> None:
        self._step = text
        if self._is_visible:
            self._print()

    def _show(self) -> None:
        self._is_visible = True
        if uses_colour(sys.stderr):
            from rich.console import Console

            self._spinner = Console(stderr=True).status("")
            self._spinner.start()
        self._print()

    def _print(self) -> None:
        text = f"{self._title}: {self._step}" if self._step else self._title
        if self._spinner is None:
            typer.echo(text, err=True)
        else:
            from rich.text import Text

            self._spinner.update(Text(text))
