"""Reads of the API of a fleet manager, for commands of administrators."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.cli.shared.output import read_file

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.web.client import Response

_BASE: Final = "/api/kafkas_mgmt/v1"


async def fetch_list(api_url: str, token_file: str, path: str, query: Mapping[str, Any]) -> dict[str, Any]:
    """The document of a list. Raises `Unreachable`, or `InvalidInput` for a token that is refused."""
    from urllib.parse import urlencode

    import msgspec

    from plimsoll.core.errors import Unreachable
    from plimsoll.web.bearer_token import BearerToken
    from plimsoll.web.client import AiohttpClient, Request, RequestFailed, check_base_url

    base = check_base_url(api_url, path="--fleet")
    token = None
    if token_file:
        text = read_file(token_file).decode("ascii", errors="replace")
        token = BearerToken(text, bases=(base,), path="--fleet-token-file")
    async with AiohttpClient(token=token) as web:
        answer = await web.send(Request(method="GET", url=f"{base}{_BASE}{path}?{urlencode(query)}"))
    if isinstance(answer, RequestFailed):
        raise Unreachable(answer.problem)
    _check_status(answer)
    try:
        document: dict[str, Any] = msgspec.json.decode(answer.body, type=dict[str, Any])
        list(document["items"])
    except (msgspec.DecodeError, KeyError, TypeError) as error:
        raise Unreachable(f"{base} is not the API of a fleet manager") from error
    return document


def _check_status(answer: Response) -> None:
    from http import HTTPStatus

    from plimsoll.core.errors import InvalidInput, Unreachable

    if answer.status in {HTTPStatus.UNAUTHORIZED, HTTPStatus.NOT_FOUND}:
        problem = f"the API answers {answer.status}: it needs the token of an administrator"
        raise InvalidInput(problem, path="--fleet-token-file")
    if answer.status != HTTPStatus.OK:
        raise Unreachable(f"the API answers {answer.status}")
