"""At exit a provider is cleaned up: the server is called, the channel is closed, and no failure is raised."""

from __future__ import annotations

import asyncio
from typing import Any

from structlog.testing import capture_logs

from plimsoll.nodes.providers.cleanup import clean_up
from plimsoll.nodes.providers.externalgrpc.client import ExternalGrpcProvider
from plimsoll.nodes.providers.externalgrpc.codes import Code, RpcFailed


class RecordedCalls:
    """A server that notes calls; it fails them with `failure`, if given."""

    def __init__(self, failure: RpcFailed | None = None) -> None:
        self.names: list[str] = []
        self.is_closed = False
        self._failure = failure

    async def call(self, method: Any, _request: Any) -> Any:
        self.names.append(method.name)
        if self._failure is not None:
            raise self._failure
        return method.response()

    async def close(self) -> None:
        self.is_closed = True


def test_the_server_is_called_and_the_channel_closed():
    calls = RecordedCalls()
    asyncio.run(clean_up(ExternalGrpcProvider(calls)))
    assert (calls.names, calls.is_closed) == (["Cleanup"], True)


def test_a_server_that_fails_is_logged_and_the_channel_closed():
    calls = RecordedCalls(RpcFailed(Code.UNAVAILABLE, "gone"))
    with capture_logs() as logs:
        asyncio.run(clean_up(ExternalGrpcProvider(calls)))
    assert calls.is_closed
    assert [log["event"] for log in logs] == ["provider.cleanup_failed"]
