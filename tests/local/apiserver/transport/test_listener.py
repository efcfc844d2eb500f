"""The parts put together: served without sockets in virtual time, and its certificate renewed while it runs."""

from __future__ import annotations

import asyncio
import ssl
from typing import TYPE_CHECKING, Any, Self

import msgspec

from plimsoll.local.apiserver.authentication import build_administrator
from plimsoll.local.apiserver.data_directory import DataDirectory
from plimsoll.local.apiserver.run import CertificateRenewal, Credentials, build_application
from plimsoll.local.apiserver.storage import MemoryDriver, Store
from plimsoll.local.apiserver.transport.certificates import load_server_certificates
from plimsoll.local.apiserver.transport.in_process import InProcessTransport, Stream
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.local.apiserver.application import Application
    from plimsoll.runtime.clocks import VirtualClock

CREDENTIALS = Credentials(users={"admins": build_administrator()}, signing_key=b"k" * 32, ca_pem=b"PEM")
HEADERS = {"Authorization": "Bearer admins", "Content-Type": "application/json"}
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"


def application(clock: VirtualClock) -> Application:
    store = Store.open(MemoryDriver(), clock=clock)
    return build_application(store, clock=clock, entropy=SeededEntropy("embedded"), credentials=CREDENTIALS)


def test_a_watch_without_sockets_sends_what_another_request_writes():
    async def story(clock: VirtualClock) -> list[str]:
        transport = InProcessTransport(application(clock))
        answer = await transport.request("GET", f"{CONFIG_MAPS}?watch=1&resourceVersion=0", headers=HEADERS)
        assert isinstance(answer.body, Stream)
        reported: list[bytes] = []

        async def follow(stream: Stream) -> None:
            async for chunk in stream:
                reported.append(chunk)  # noqa: PERF401 -- the test looks at it while it grows

        following = asyncio.create_task(follow(answer.body))
        body = msgspec.json.encode({"metadata": {"name": "told"}})
        assert (await transport.request("POST", CONFIG_MAPS, headers=HEADERS, body=body)).status == 201
        await clock.sleep(1)
        await transport.aclose()
        await following
        events = [msgspec.json.decode(line) for line in b"".join(reported).splitlines()]
        return [f"{event['type']} {event['object']['metadata']['name']}" for event in events]

    assert "ADDED told" in run_virtual(story)


def test_two_servers_with_the_same_seed_answer_alike():
    async def story(clock: VirtualClock) -> object:
        transport = InProcessTransport(application(clock))
        return (await transport.request("GET", "/api/v1/namespaces", headers=HEADERS)).body

    assert run_virtual(story) == run_virtual(story)


def test_a_server_that_runs_on_gets_the_next_certificate_in_time(tmp_path: Path):
    directory = DataDirectory(tmp_path)
    with VirtualRun() as run:
        first = load_server_certificates(directory, host="127.0.0.1", now=run.clock.now())
        shown = first.certificate_file.read_bytes()
        tls = CountingContext()
        run.spawn(CertificateRenewal(directory, host="127.0.0.1", tls=tls, clock=run.clock).run())
        run.advance_by(330 * 86_400)
        assert tls.loads == 0
        run.advance_by(10 * 86_400)
        assert tls.loads == 1
        assert first.certificate_file.read_bytes() != shown
        assert load_server_certificates(directory, host="127.0.0.1", now=run.clock.now()).ca_pem == first.ca_pem


class CountingContext(ssl.SSLContext):
    """Counts how often it was given a certificate."""

    loads: int

    def __new__(cls) -> Self:
        made = super().__new__(cls, ssl.PROTOCOL_TLS_SERVER)
        made.loads = 0
        return made

    def load_cert_chain(self, *files: Any, **_more: Any) -> None:
        super().load_cert_chain(*files)
        self.loads += 1
