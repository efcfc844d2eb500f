"""The client of Cruise Control over TLS and sockets: trust by an authority, users, and servers that are away."""

from __future__ import annotations

import asyncio
import ssl
import sys
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.cruise_control.client.client import MAX_RESPONSE_BYTES, TIMEOUT_S, CruiseControlClient
from plimsoll.kafka.cruise_control.server.authentication import User
from plimsoll.kafka.cruise_control.server.endpoints import Role
from plimsoll.kafka.model.rebalances import ExecutorSubstate, Proposed, RebalanceRefused, RebalanceSpec
from plimsoll.kafka.model.requests import Mode
from plimsoll.kube.secret_tls import build_tls_context
from plimsoll.runtime.clocks import RealClock
from plimsoll.web.client import AiohttpClient
from plimsoll.web.serving import TlsFiles, serve
from tests.e2e.ports import lasting_port
from tests.kafka.cruise_control.server.server_bench import describe_cluster, start_server
from tests.kube.http.authorities import CertificateAuthority

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from plimsoll.web.client import HttpClient

pytestmark = pytest.mark.asyncio

USERS = (User(name="rebalance-operator", password="right", role=Role.ADMIN),)
ADD = RebalanceSpec(mode=Mode.ADD_BROKERS, brokers=(3,), excluded_topics="no(such|topic).*")


@asynccontextmanager
async def open_server(folder: Path) -> AsyncIterator[tuple[str, CertificateAuthority]]:
    """A server with TLS and a user; its base URL and its authority."""
    authority = CertificateAuthority("cluster-ca")
    pair = authority.issue("127.0.0.1")
    files = TlsFiles(certificate=str(folder / "cert.pem"), key=str(folder / "key.pem"))
    (folder / "cert.pem").write_bytes(pair.certificate_pem)
    (folder / "key.pem").write_bytes(pair.key_pem)
    address = f"127.0.0.1:{lasting_port()}"
    async with (
        start_server(RealClock(), cluster=describe_cluster(brokers=4), users=USERS) as bench,
        listen(bench.client.server, address, tls=files),
    ):
        yield f"https://{address}/kafkacruisecontrol", authority


@asynccontextmanager
async def listen(application: ASGIApp, address: str, *, tls: TlsFiles | None = None) -> AsyncIterator[None]:
    """The application behind a socket that accepts connections."""
    serving = asyncio.create_task(serve(application, address, tls=tls))
    for _ in range(500):
        try:
            _, writer = await asyncio.open_connection(*address.split(":"))
        except OSError:
            await asyncio.sleep(0.02)
        else:
            writer.close()
            break
    try:
        yield
    finally:
        serving.cancel()
        await asyncio.wait((serving,))


def build_client(
    base: str, web: HttpClient, authority: CertificateAuthority, *, password: str = "right"
) -> CruiseControlClient:
    tls = build_tls_context({"ca.crt": authority.pem}, "Secret ns/c-cluster-ca-cert")
    return CruiseControlClient(base, web=web, tls=tls, user="rebalance-operator", password=password)


async def test_requests_over_tls(tmp_path: Path) -> None:
    async with (
        open_server(tmp_path) as (base, authority),
        AiohttpClient(timeout_s=TIMEOUT_S, max_bytes=MAX_RESPONSE_BYTES) as web,
    ):
        client = build_client(base, web, authority)
        state = await client.read_executor_state()
        assert isinstance(state, ExecutorSubstate)
        assert state.is_idle
        proposed = await client.request_rebalance(ADD, is_dry_run=True)
        assert isinstance(proposed, Proposed), proposed
        assert await client.stop_execution() is None

        denied = await build_client(base, web, authority, password="wrong").read_executor_state()
        assert isinstance(denied, RebalanceRefused)
        assert "401" in denied.message
        assert denied.is_transient, "the password may be changing in the Secret and in the server"

        distrusted = await build_client(base, web, CertificateAuthority("other")).read_executor_state()
        assert isinstance(distrusted, RebalanceRefused)
        assert (distrusted.reason, distrusted.is_transient) == ("SSLException", True)

        plain = CruiseControlClient(base.replace("https:", "http:"), web=web)
        spoken = await plain.read_executor_state()
        assert isinstance(spoken, RebalanceRefused)
        assert spoken.is_transient


async def test_a_server_that_is_away() -> None:
    async with AiohttpClient(timeout_s=TIMEOUT_S) as web:
        for host in (f"127.0.0.1:{lasting_port()}", "c-cruise-control.no-such-namespace.svc.invalid:9090"):
            client = CruiseControlClient(
                f"https://{host}/kafkacruisecontrol", web=web, tls=ssl.create_default_context()
            )
            away = await client.read_executor_state()
            assert isinstance(away, RebalanceRefused)
            assert (away.reason, away.is_transient) == ("CruiseControlRetriableConnectionException", True)


async def test_an_answer_of_100_mb_is_refused() -> None:
    async def answer(scope: Scope, _receive: Receive, send: Send) -> None:
        assert scope["type"] == "http"
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"application/json")]})
        for _ in range(100):
            await send({"type": "http.response.body", "body": b" " * 1_000_000, "more_body": True})
        await send({"type": "http.response.body", "body": b"{}"})

    address = f"127.0.0.1:{lasting_port()}"
    async with (
        listen(answer, address),
        AiohttpClient(timeout_s=TIMEOUT_S, max_bytes=MAX_RESPONSE_BYTES) as web,
    ):
        client = CruiseControlClient(f"http://{address}/kafkacruisecontrol", web=web)
        refused = await client.request_rebalance(ADD, is_dry_run=True)
    assert isinstance(refused, RebalanceRefused)
    assert refused.is_transient
    assert f"more than {MAX_RESPONSE_BYTES} bytes" in refused.message


async def test_a_request_of_cccli_that_is_answered_202_three_times_starts_one_execution() -> None:
    """cccli asks again with its cookie only, and with `dryrun=False`."""
    statuses: list[int] = []
    address = f"127.0.0.1:{lasting_port()}"
    cluster = describe_cluster(brokers=4)
    async with start_server(RealClock(), cluster=cluster, max_block_time_s=0.5) as bench:
        bench.describe_delay_s = 1.8

        async def count(scope: Scope, receive: Receive, send: Send) -> None:
            async def observe(message: Message) -> None:
                if message["type"] == "http.response.start":
                    statuses.append(message["status"])
                await send(message)

            await bench.client.server(scope, receive, observe)

        async with listen(count, address):
            words = ("-a", address, "add-brokers", "3")
            cccli = await asyncio.create_subprocess_exec(
                str(Path(sys.executable).with_name("cccli")), *words, stdout=asyncio.subprocess.DEVNULL
            )
            assert await asyncio.wait_for(cccli.wait(), 60) == 0
            assert statuses[-1] == 200
            assert statuses[:-1].count(202) == len(statuses) - 1 >= 3
            assert len(bench.executor.executions) == 1
