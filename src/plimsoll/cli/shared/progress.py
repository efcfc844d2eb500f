"""What a command is doing, on stderr, once it has taken longer than a person waits without wondering."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, Self

import typer

if TYPE_CHECKING:
    from types import TracebackType

PATIENCE_S: Final = 2.0


class Progress:
    """`with Progress("looking at …") as progress:` inside a running loop; `progress.step("…")` says what is done next.

    Says nothing in the first two seconds, then the present step and each further one.
    """

    def __init__(self, title: str, *, is_silent: bool = False) -> None:
        self._title = title
        self._is_silent = is_silent
        self._step = ""
        self._is_speaking = False
        self._patience: asyncio.TimerHandle | None = None

    def __enter__(self) -> Self:
        if not self._is_silent:
            self._patience = asyncio.get_running_loop().call_later(PATIENCE_S, self._speak_up)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._patience is not None:
            self._patience.cancel()

    def step(self, told: str) -> None:
        self._step = told
        if self._is_speaking:
            self._say()

    def _speak_up(self) -> None:
        self._is_speaking = True
        self._say()

    def _say(self) -> None:
        typer.echo(f"{self._title}: {self._step}" if self._step else self._title, err=True)
