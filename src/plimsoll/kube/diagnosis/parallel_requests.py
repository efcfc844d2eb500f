"""Many questions to one server at a time, but not too many; a question that fails does not stop the others."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, TypeVar

from plimsoll.core.errors import PlimsollError
from plimsoll.kube.errors import CredentialsFailed, NotSent

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

Item = TypeVar("Item")
Answer = TypeVar("Answer")

AT_ONCE: Final = 8


async def request_all(items: Iterable[Item], ask: Callable[[Item], Awaitable[Answer]]) -> list[Answer | PlimsollError]:
    """The answers in the order of the items; what went wrong stands where its answer would.

    Raises `NotSent` if the server went away meanwhile, `CredentialsFailed` if we no longer have any: then the other
    answers are worth nothing either.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(item: Item) -> Answer | PlimsollError:
        async with gate:
            try:
                return await ask(item)
            except PlimsollError as error:
                return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(one(item)) for item in items]
    answers = [task.result() for task in tasks]
    if gone := next((answer for answer in answers if isinstance(answer, NotSent | CredentialsFailed)), None):
        raise gone
    return answers
