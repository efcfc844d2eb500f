"""`PinnedHttpClient` and `request_recommendation` over real sockets: pinned address, TLS from a Secret, bad servers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.objects.api.tidb import ExternalEndpoint, SecretReference
from plimsoll.tidb.external.recommender import (
    LARGEST_ANSWER_BYTES,
    RecommendationFailed,
    RecommendationRequest,
    request_recommendation,
)
from plimsoll.tidb.model.components import Component
from plimsoll.web.address_guard import parse_exceptions
from plimsoll.web.client import PinnedHttpClient
from tests.e2e.kube_http.servers import ScriptedServer, server_tls, serving
from tests.e2e.ports import lasting_port
from tests.kube.http.authorities import CertificateAuthority
from tests.tidb.external.fake_services import FakeSecrets, advice

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.web.client import RequestFailed

pytestmark = pytest.mark.asyncio

CA = CertificateAuthority("advice-ca")
HOST = "advice.prod.svc"


class LoopbackHttpClient(PinnedHttpClient):
    """Resolves every name to this machine, as a cluster's DNS would to a service of it."""

    async def resolve(self, host: str, port: int) -> tuple[str, ...] | RequestFailed:
        del host, port
        return ("127.0.0.1",)


def stated(body: bytes, *, head: bytes = b"HTTP/1.1 200 OK") -> bytes:
    return head + b"\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body)


async def asked(
    port: int,
    *,
    caller: PinnedHttpClient | None = None,
    host: str = HOST,
    held: dict[str, bytes] | None = None,
    allowed: Iterable[str] = ("127.0.0.1",),
) -> int | RecommendationFailed:
    secret = SecretReference(name="tls") if held is not None else None
    endpoint = ExternalEndpoint(host=host, port=port, path="/advise", tls_secret=secret)
    question = RecommendationRequest(
        endpoint=endpoint, autoscaler_namespace="prod", namespace="prod", cluster="db", component=Component.TIKV
    )
    return await request_recommendation(
        question,
        caller=caller or LoopbackHttpClient(max_bytes=LARGEST_ANSWER_BYTES),
        secrets=FakeSecrets({("prod", "tls"): held or {}}),
        exceptions=parse_exceptions(allowed),
    )


async def test_the_judged_address_is_called_and_the_host_is_named() -> None:
    server = ScriptedServer(stated(advice(4)))
    async with serving(server) as port:
        assert await asked(port) == 4
    (head,) = server.heads
    assert head.line == "GET /advise?name=db&namespace=prod&type=tikv HTTP/1.1"
    assert head.values("host") == [f"{HOST}:{port}"]


async def test_loopback_is_not_called_unless_allowed() -> None:
    server = ScriptedServer(stated(advice(4)))
    async with serving(server) as port:
        for name in ("localhost", "127.0.0.1", "127.1", "2130706433", "0x7f.1", "0"):
            found = await asked(port, caller=PinnedHttpClient(max_bytes=LARGEST_ANSWER_BYTES), host=name, allowed=())
            assert isinstance(found, RecommendationFailed), name
    assert server.heads == []


async def test_a_redirect_is_not_followed() -> None:
    target = ScriptedServer(stated(advice(9)))
    async with serving(target) as elsewhere:
        head = b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/" % elsewhere
        async with serving(ScriptedServer(stated(b"", head=head))) as port:
            assert isinstance(await asked(port), RecommendationFailed)
    assert target.heads == []


async def test_an_endless_answer_is_cut_off() -> None:
    head = b"HTTP/1.1 200 OK\r\nContent-Length: 9999999999\r\n\r\n"
    async with serving(ScriptedServer(head + b" " * 70_000)) as port:
        found = await asked(port)
    assert isinstance(found, RecommendationFailed)
    assert "more than 65536 bytes" in found.problem


async def test_no_server_there_and_no_such_host() -> None:
    assert isinstance(await asked(lasting_port()), RecommendationFailed)
    found = await asked(80, caller=PinnedHttpClient(max_bytes=LARGEST_ANSWER_BYTES), host="no-such-host.invalid")
    assert isinstance(found, RecommendationFailed)
    assert "cannot be resolved" in found.problem


async def test_tls_with_both_certificates() -> None:
    ours = CA.issue(subject="autoscaler")
    held = {"ca.crt": CA.pem, "tls.crt": ours.certificate_pem, "tls.key": ours.key_pem}
    async with serving(ScriptedServer(stated(advice(4))), tls=server_tls(CA.issue(HOST), clients=CA.pem)) as port:
        assert await asked(port, held=held) == 4
        assert isinstance(await asked(port, held={"ca.crt": CA.pem}), RecommendationFailed)


@pytest.mark.parametrize("wrong", ["authority", "name"])
async def test_a_server_with_the_wrong_certificate_receives_nothing(wrong: str) -> None:
    pair = (
        CertificateAuthority("their-ca").issue(HOST)
        if wrong == "authority"
        else CA.issue("other.prod.svc", "127.0.0.1")
    )
    server = ScriptedServer(stated(advice(4)))
    async with serving(server, tls=server_tls(pair)) as port:
        assert isinstance(await asked(port, held={"ca.crt": CA.pem}), RecommendationFailed)
    assert server.heads == []
