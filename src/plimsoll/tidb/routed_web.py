"""A `Web` whose servers are functions in this process: simulated PDs and Prometheus, in `plimsoll up` and in scenarios.

Whoever wires the program says which addresses are simulated and who answers there. All else is nobody's, or goes on to
another `Web`.
"""

from __future__ import annotations

from http import HTTPStatus
from typing import TYPE_CHECKING

from plimsoll.tidb.web import Answered, Unanswered

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from plimsoll.tidb.web import Asked, Web

    Route = Callable[[str], str | None]
    """From an address to what `Answer` calls it; None: it is somewhere else."""
    Answer = Callable[[str, str, bytes], Awaitable[tuple[int, bytes]]]
    """Method, target and body to status and body."""


class RoutedWeb:
    """`beyond` None: there is nothing else."""

    def __init__(self, answer: Answer, *, route: Route, beyond: Web | None = None) -> None:
        self._answer = answer
        self._route = route
        self._beyond = beyond

    async def ask(self, asked: Asked) -> Answered | Unanswered:
        target = self._route(asked.url)
        if target is None:
            nobody = Unanswered(problem=f"there is nobody at {asked.url}")
            return nobody if self._beyond is None else await self._beyond.ask(asked)
        status, body = await self._answer(asked.method, target, asked.body)
        if status == HTTPStatus.SERVICE_UNAVAILABLE:
            # As a service without a pod behind it: the connection is refused.
            return Unanswered(problem=f"cannot reach {asked.url}")
        return Answered(status=int(status), body=body)
