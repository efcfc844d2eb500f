"""GET of one object, and lists: pages, selectors, and the meaning of resourceVersion in both."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec.structs import replace

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.registry.identity import build_key
from plimsoll.local.apiserver.request.continue_tokens import NEWEST, ContinueToken, decode_token, encode_token
from plimsoll.local.apiserver.request.options import parse_revision, read_list_options
from plimsoll.local.apiserver.request.responses import build_list_response, build_stored_response, negotiate_form
from plimsoll.local.apiserver.request.selectors import build_matcher
from plimsoll.local.apiserver.storage import Compacted, ListQuery, Page, RevisionAhead, select_from

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.http_types import Response
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.request.options import ListOptions
    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.storage import Stored

Json = dict[str, Any]

# To try so much of a selector on one object costs about what the reading of one byte does.
_SELECTOR_CHARACTERS_PER_BYTE: Final = 16
# How long a reader may wait for a revision that was not there yet, as in the real server's cache.
_WAIT_S: Final = 3.0
_TOO_OLD_TO_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new list without "
    "the continue parameter, or use the continue token in this response to retrieve the remainder of the results. "
    "Continuing with the provided token results in an inconsistent list - objects that were created, modified, or "
    "deleted between the time the first chunk was returned and now may show up in the list."
)


async def get(server: Server, call: RequestContext) -> Response:
    negotiate_form(call)
    resource_version = call.request.get_parameter("resourceVersion") or ""
    if resource_version:
        number = parse_revision(resource_version)
        if isinstance(number, str):
            raise status_errors.unexpected(f'resourceVersion: Invalid value: "{resource_version}": {number}')
        await wait_for_revision(server, number)
    stored = server.store.get(build_key(call))
    if stored is None:
        raise status_errors.not_found(call.name, group=call.resource.group, resource=call.resource.plural)
    return await build_stored_response(server, call, stored)


async def list_objects(server: Server, call: RequestContext) -> Response:
    negotiate_form(call)
    options = read_list_options(call.request, watch=False)
    page = await find_page(server, call, options)
    return await build_list_response(server, call, page.items, _build_metadata(page, call))


async def find_page(server: Server, call: RequestContext, options: ListOptions) -> Page:
    """The objects a list or a deletion of a collection means."""
    matches = await read_selectors(server, call, options)
    namespace = call.namespace if call.resource.namespaced else ""
    if options.continue_:
        query = _continue_query(options, namespace)
    else:
        query = ListQuery(
            namespace=namespace or None, limit=_limit(options), at=await _resolve_revision(server, options)
        )
        if options.resource_version == "0":
            query = ListQuery(namespace=namespace or None)  # from the cache, which does not page
    try:
        if matches is None:
            return server.store.list(call.resource.stored_as, query)
        everything = server.store.list(call.resource.stored_as, replace(query, limit=None))
        return await select_matching(server, everything, options, matches, limit=query.limit)
    except Compacted as error:
        raise _build_expired_error(options, namespace) from error
    except RevisionAhead as error:
        raise too_large(error.requested, error.newest) from error


async def read_selectors(server: Server, call: RequestContext, options: ListOptions) -> Callable[[Stored], bool] | None:
    """What the selectors match, or none for everything; long ones read away from the loop."""
    size_bytes = len(options.label_selector) + len(options.field_selector)
    return await server.long_work.run(size_bytes, partial(build_matcher, options, call.resource))


async def select_matching(
    server: Server, everything: Page, options: ListOptions, matches: Callable[[Stored], bool], *, limit: int | None
) -> Page:
    """The part of a list that its selectors match; a long selector over many objects away from the loop."""
    per_object = max(1, len(options.label_selector + options.field_selector) // _SELECTOR_CHARACTERS_PER_BYTE)
    size_bytes = len(everything.items) * per_object
    return await server.long_work.run(size_bytes, partial(select_from, everything, matches, limit=limit))


def _limit(options: ListOptions) -> int | None:
    return options.limit if options.limit > 0 else None


def _continue_query(options: ListOptions, namespace: str) -> ListQuery:
    place = decode_token(options.continue_)
    if options.resource_version and options.resource_version != "0":
        raise status_errors.bad_request("specifying resource version is not allowed when using continue")
    at = None if place.revision == NEWEST else place.revision
    start = f"{namespace}/{place.start}" if namespace else place.start
    return ListQuery(namespace=namespace or None, start=start, limit=_limit(options), at=at)


async def _resolve_revision(server: Server, options: ListOptions) -> int | None:
    """The exact revision a list is asked for, or none for the newest; waits for one that is still to come."""
    resource_version = options.resource_version
    if not resource_version:
        return None
    number = parse_revision(resource_version)
    if isinstance(number, str):
        raise status_errors.bad_request(
            f'invalid resource version: resourceVersion: Invalid value: "{resource_version}": {number}'
        )
    await wait_for_revision(server, number)
    if options.match == "Exact" or (options.limit > 0 and not options.match and number > 0):
        return number
    return None


async def wait_for_revision(server: Server, revision: int) -> None:
    if not await server.store.wait_for(revision, timeout_s=_WAIT_S):
        raise too_large(revision, server.store.revision)


def too_large(requested: int, newest: int) -> status_errors.StatusError:
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return status_errors.failure(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {requested}, current: {newest}",
        details={"causes": [cause], "retryAfterSeconds": 1},
        headers=(("Retry-After", "1"),),
    )


def _build_expired_error(options: ListOptions, namespace: str) -> status_errors.StatusError:
    if not options.continue_:
        return status_errors.failure(410, "Expired", "The resourceVersion for the provided list is too old.")
    place = decode_token(options.continue_)
    refusal = status_errors.failure(410, "Expired", _TOO_OLD_TO_CONTINUE)
    start = place.start.removeprefix(f"{namespace}/") if namespace else place.start
    refusal.status["metadata"] = {"continue": encode_token(ContinueToken(NEWEST, start))}
    return refusal


def _build_metadata(page: Page, call: RequestContext) -> Json:
    metadata: Json = {"resourceVersion": str(page.revision)}
    if page.next is not None:
        namespace = call.namespace if call.resource.namespaced else ""
        start = page.next.removeprefix(f"{namespace}/") if namespace else page.next
        metadata["continue"] = encode_token(ContinueToken(page.revision, start))
        if page.remaining:
            metadata["remainingItemCount"] = page.remaining
    return metadata
