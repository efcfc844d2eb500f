"""A notice on stderr for work that takes longer than a person waits without wondering and has no steps to name."""

from __future__ import annotations

import threading
from typing import Final, Self

import typer

PATIENCE_S: Final = 2.0


class SlowNotice:
    """`with SlowNotice("planning …"):` around the work; after two seconds, stderr says what goes on."""

    def __init__(self, text: str, *, is_silent: bool = False, patience_s: float = PATIENCE_S) -> None:
        self._text = text
        self._timer = None if is_silent else threading.Timer(patience_s, self._print)

    def __enter__(self) -> Self:
        if self._timer is not None:
            self._timer.daemon = True
            self._timer.start()
        return self

    def __exit__(self, *error: object) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _print(self) -> None:
        typer.echo(f"{self._text} …", err=True)
