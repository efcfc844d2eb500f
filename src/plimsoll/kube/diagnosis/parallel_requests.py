"""Concurrent requests to one server, limited in number; a request that fails does not stop the others."""

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
    """The responses in the order of the items; an error takes the place of its response.

    Raises `NotSent` if the server became unreachable and `CredentialsFailed` if there are no valid credentials any
    more: then the other responses are useless too.
    """
    gate = asyncio.Semaphore(AT_ONCE)

    async def request_one(item: Item) -> Answer | PlimsollError:
        async with gate:
            try:
                return await ask(item)
            except PlimsollError as error:
                return error

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(request_one(item)) for item in items]
    answers = [task.result() for task in tasks]
    if gone := next((answer for answer in answers if isinstance(answer, NotSent | CredentialsFailed)), None):
        raise gone
    return answers
