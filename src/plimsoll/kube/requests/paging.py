"""Lists in pages, so that neither server nor client ever holds 100,000 objects as one text.

All pages of a list have the version of the first. The server keeps that version only for minutes; then it answers
`Expired`, and the pages read so far cannot be completed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Generic, TypeVar

import structlog

from plimsoll.core.values import Value
from plimsoll.kube.errors import Expired, UnreadableAnswer
from plimsoll.objects.api.meta import ListMeta, WireObject
from plimsoll.objects.codec.decoding import DecodedList

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable

    from plimsoll.kube.requests.options import Selection

    Query = list[tuple[str, str]]

T = TypeVar("T", bound=WireObject)
P = TypeVar("P")

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

_MOST_RESTARTS: Final = 3


class RawPage(Value, Generic[T]):
    """A page, and the bytes of each readable item in the same order."""

    listed: DecodedList[T]
    raws: tuple[bytes, ...]


class PartialObjectMetadata(WireObject):
    """An object of any kind, of which only the metadata was requested."""


async def iterate_pages(
    fetch: Callable[[Query], Awaitable[P]],
    selection: Selection,
    *,
    page_size: int,
    listed_in: Callable[[P], DecodedList[T]],
) -> AsyncIterator[P]:
    """Every page. Raises `Expired` in mid-list, and `UnreadableAnswer` for a page that is not a list."""
    limit = [("limit", str(page_size))] if page_size else []
    query = [*selection.query, *selection.version_query, *limit]
    token = ""
    while True:
        page = await fetch(query)
        listed = listed_in(page)
        if listed.problem:
            raise UnreadableAnswer(f"a list that cannot be read: {listed.problem}")
        before, token = token, listed.metadata.continue_
        if token and token == before:
            raise UnreadableAnswer("a list without end: the server continues it where it began")
        yield page
        if not token:
            return
        # The version is in the token, and servers refuse a request that also names it.
        query = [*selection.query, *limit, ("continue", token)]


async def list_all(paged: Callable[[Selection], AsyncIterator[DecodedList[T]]], selection: Selection) -> DecodedList[T]:
    """All pages as one list. Starts over when it expires on the way, the last time without pages."""
    for attempt in range(1, _MOST_RESTARTS + 1):
        pages_read: list[DecodedList[T]] = []
        try:
            async for page in paged(selection):
                pages_read.append(page)  # noqa: PERF401 - on Expired it matters how far we came
        except Expired:
            if not pages_read:
                raise
            log.info("client.list_expired", pages=len(pages_read), attempt=attempt)
        else:
            return _join_pages(pages_read)
    return _join_pages([page async for page in paged(selection.without_paging())])


def _join_pages(read: list[DecodedList[T]]) -> DecodedList[T]:
    return DecodedList(
        items=tuple(item for page in read for item in page.items),
        bad=tuple(bad for page in read for bad in page.bad),
        metadata=ListMeta(resource_version=read[0].metadata.resource_version),
    )
