"""Requests to an application in the same process: what a server would get and give, without a socket."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from starlette.requests import Request as Incoming
from starlette.responses import Response as Outgoing
from starlette.responses import StreamingResponse

from plimsoll.testing import run_virtual
from plimsoll.web.asgi_client import AsgiClient
from plimsoll.web.client import FailureKind, Request, RequestFailed, Response

if TYPE_CHECKING:
    from starlette.types import Receive, Scope, Send


def test_an_application_gets_the_request_as_it_was_sent():
    seen: dict[str, Any] = {}

    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        incoming = Incoming(scope, receive)
        seen.update(method=incoming.method, path=scope["path"], query=scope["query_string"])
        seen.update(headers=dict(incoming.headers), body=await incoming.body())
        await Outgoing(b"made", 201, headers={"User-Task-ID": "7"})(scope, receive, send)

    request = Request(
        method="POST",
        url="https://c.ns.svc:9090/a%2Fb/c?topic=a.%2A%26b&x=1,2",
        body=b"{}",
        content_type="application/json",
        headers={"Authorization": "Basic eA=="},
    )
    answer = run_virtual(AsgiClient(application).send(request))
    assert answer == Response(status=201, body=b"made", headers={"user-task-id": "7", "content-length": "4"})
    assert (seen["method"], seen["path"], seen["query"]) == ("POST", "/a/b/c", b"topic=a.%2A%26b&x=1,2")
    assert seen["body"] == b"{}"
    assert seen["headers"]["host"] == "c.ns.svc:9090"
    assert seen["headers"]["content-type"] == "application/json"
    assert seen["headers"]["authorization"] == "Basic eA=="


def test_an_answer_in_parts_is_put_together():
    async def application(scope: Scope, receive: Receive, send: Send) -> None:
        async def write() -> Any:
            for part in (b"a", b"b", b"c"):
                yield part

        await StreamingResponse(write())(scope, receive, send)

    answer = run_virtual(AsgiClient(application).send(Request(method="GET", url="http://x/")))
    assert isinstance(answer, Response)
    assert answer.body == b"abc"


def test_an_application_that_is_too_slow_gives_no_answer():
    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        await asyncio.sleep(3600)

    answer = run_virtual(AsgiClient(application).send(Request(method="GET", url="http://x/y", timeout_s=3)))
    assert answer == RequestFailed(problem="no answer from http://x within 3 s", kind=FailureKind.TIMED_OUT)


def test_an_application_that_says_nothing_gives_no_answer():
    async def application(_scope: Scope, _receive: Receive, _send: Send) -> None:
        return

    answer = run_virtual(AsgiClient(application).send(Request(method="GET", url="http://x/y")))
    assert isinstance(answer, RequestFailed)
    assert answer.kind is FailureKind.LOST
