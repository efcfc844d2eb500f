"""The transport against `plimsoll apiserver` as a process of its own, over TLS."""

from __future__ import annotations

import asyncio
import json
import signal
import time
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.access import Access, Credential, Tls
from plimsoll.kube.errors import AnswerLost, NotSent
from plimsoll.kube.transport import JSON, MERGE_PATCH, Request
from tests.e2e.apiserver.processes import ApiServer, config_map, running
from tests.e2e.kube_http.servers import ScriptedServer, StaticCredentials, reaching, secure, server_tls, serving
from tests.kube.http.authorities import LOOPBACK, CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from plimsoll.kube.transport import Stream

pytestmark = pytest.mark.asyncio

MAPS = "/api/v1/namespaces/default/configmaps"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ApiServer]:
    with running(tmp_path) as process:
        yield process


def access_to(server: ApiServer, token: str = "") -> Access:
    shown = Credential(headers={"Authorization": f"Bearer {token or server.token}"})
    return Access(server=server.url, credentials=StaticCredentials(shown), tls=Tls(ca_pem=server.ca_pem.encode()))


def creating(name: str) -> Request:
    return Request("POST", MAPS, headers={"Content-Type": JSON}, body=json.dumps(config_map(name)).encode())


async def next_event(stream: Stream) -> Any:
    return json.loads(await anext(stream))


async def test_objects_are_made_read_changed_watched_and_deleted(server: ApiServer):
    async with reaching(access_to(server)) as transport:
        made = await transport.send(creating("a"))
        assert made.status == 201
        version = json.loads(made.body)["metadata"]["resourceVersion"]
        query = (("watch", "1"), ("resourceVersion", version), ("fieldSelector", "metadata.name=a"))
        watch = await transport.send(Request("GET", MAPS, query, is_stream=True))
        assert watch.stream is not None

        patch = Request("PATCH", f"{MAPS}/a", headers={"Content-Type": MERGE_PATCH}, body=b'{"data":{"x":"y"}}')
        assert (await transport.send(patch)).status == 200
        assert (await next_event(watch.stream))["object"]["data"]["x"] == "y"
        assert (await transport.send(Request("DELETE", f"{MAPS}/a"))).status == 200
        assert (await next_event(watch.stream))["type"] == "DELETED"
        assert (await transport.send(Request("GET", f"{MAPS}/a"))).status == 404


async def test_a_token_the_server_does_not_know_is_answered(server: ApiServer):
    async with reaching(access_to(server, token="wrong")) as transport:
        reply = await transport.send(Request("GET", MAPS))
    assert reply.status == 401
    assert json.loads(reply.body)["reason"] == "Unauthorized"


async def test_many_calls_at_once_are_all_answered(server: ApiServer):
    async with reaching(access_to(server)) as transport, asyncio.TaskGroup() as group:
        calls = [group.create_task(transport.send(creating(f"map-{number}"))) for number in range(150)]
        await asyncio.wait(calls)
        listed = json.loads((await transport.send(Request("GET", MAPS))).body)
    assert {call.result().status for call in calls} == {201}
    assert len([item for item in listed["items"] if item["metadata"]["name"].startswith("map-")]) == 150


async def test_a_server_that_is_killed_loses_streams_and_is_then_not_there(server: ApiServer):
    async with reaching(access_to(server)) as transport:
        watch = await transport.send(Request("GET", MAPS, (("watch", "1"),), is_stream=True))
        assert watch.stream is not None
        await asyncio.to_thread(server.stop, signal.SIGKILL)
        with pytest.raises(AnswerLost):
            async for _ in watch.stream:
                pass
        with pytest.raises(NotSent, match=r"connection refused; is the API server running\?"):
            await transport.send(Request("GET", "/version"))


async def test_a_server_that_stops_ends_its_streams(server: ApiServer):
    async with reaching(access_to(server)) as transport:
        watch = await transport.send(Request("GET", MAPS, (("watch", "1"),), is_stream=True))
        assert watch.stream is not None
        stopping = asyncio.create_task(asyncio.to_thread(server.stop))
        async for _ in watch.stream:
            pass
        assert await stopping == 0


async def test_a_page_of_20_mb_does_not_hold_up_the_loop():
    """The other side is in this loop, too, and works as hard; so this is an upper bound, and a generous one.

    Seconds of this thread's own work: what else the machine has to do blocks no loop for good.
    """
    ca = CertificateAuthority()
    body = b'{"metadata":{"name":"a"}}' * 800_000
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)
    longest_s = 0.0

    async def heartbeat() -> None:
        nonlocal longest_s
        while True:
            before_s = time.thread_time()
            await asyncio.sleep(0.001)
            longest_s = max(longest_s, time.thread_time() - before_s)

    async with (
        serving(ScriptedServer(answer), tls=server_tls(ca.issue(*LOOPBACK))) as port,
        reaching(secure(port, Tls(ca_pem=ca.pem))) as transport,
    ):
        beating = asyncio.create_task(heartbeat())
        reply = await transport.send(Request("GET", "/"))
        beating.cancel()
    assert reply.body == body
    assert longest_s < 1
