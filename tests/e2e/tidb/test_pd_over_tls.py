"""PD behind TLS that wants a certificate, over real sockets: shown, refused, and changed while we run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.objects.api.tidb import TidbCluster
from plimsoll.tidb.pd.access import PdAccess
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.web.client import AiohttpClient
from tests.e2e.kube_http.servers import ScriptedServer, server_tls, serving
from tests.faults.lies import STATUS_CODES, Lie, change_document
from tests.kube.http.authorities import CertificateAuthority
from tests.tidb.external.fake_services import FakeSecrets

if TYPE_CHECKING:
    from collections.abc import Mapping

pytestmark = pytest.mark.asyncio

HOST = "localhost"
CA = CertificateAuthority("cluster-ca")
OTHERS = CertificateAuthority("other-ca")
KEY = ("prod", "db-cluster-client-secret")
STORES = b'{"count":0,"stores":[]}'
ANSWER = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nConnection: close\r\n\r\n%s" % (len(STORES), STORES)


def base() -> TidbCluster:
    written: dict[str, Any] = {
        "metadata": {"name": "db", "namespace": "prod"},
        "spec": {"tlsCluster": {"enabled": True}},
    }
    return msgspec.convert(written, TidbCluster)


def secret(clients: CertificateAuthority = CA, trusted: CertificateAuthority = CA) -> dict[str, bytes]:
    pair = clients.issue(subject="autoscaler")
    return {"ca.crt": trusted.pem, "tls.crt": pair.certificate_pem, "tls.key": pair.key_pem}


async def stores(port: int, held: Mapping[tuple[str, str], dict[str, bytes]]) -> object:
    async with AiohttpClient() as web:
        return (
            await PdAccess(web, FakeSecrets(held), guard=None, address=f"https://{HOST}:{port}")
            .build_client(base())
            .get_stores()
        )


async def test_pd_answers_a_client_with_the_certificate() -> None:
    server = ScriptedServer(ANSWER)
    async with serving(server, tls=server_tls(CA.issue(HOST), clients=CA.pem)) as port:
        assert await stores(port, {KEY: secret()}) == ()
    assert [head.target for head in server.heads] == ["/pd/api/v1/stores"]


@pytest.mark.parametrize(
    "held",
    [{}, {KEY: secret(clients=OTHERS)}, {KEY: secret(trusted=OTHERS)}],
    ids=["no secret", "a stranger's certificate", "another authority"],
)
async def test_no_other_server_receives_anything(held: dict[tuple[str, str], dict[str, bytes]]) -> None:
    server = ScriptedServer(ANSWER)
    async with serving(server, tls=server_tls(CA.issue(HOST), clients=CA.pem)) as port:
        found = await stores(port, held)
    assert isinstance(found, PdFailed)
    assert found.is_unreachable
    assert server.heads == []


async def test_a_certificate_that_was_changed_is_taken_up_by_the_next_pass() -> None:
    held = {KEY: secret(clients=OTHERS)}
    async with (
        serving(ScriptedServer(ANSWER, ANSWER), tls=server_tls(CA.issue(HOST), clients=CA.pem)) as port,
        AiohttpClient() as web,
    ):
        pds = PdAccess(web, FakeSecrets(held), guard=None, address=f"https://{HOST}:{port}")
        assert isinstance(await pds.build_client(base()).get_stores(), PdFailed)
        held[KEY] = secret()
        assert await pds.build_client(base()).get_stores() == ()


SOME_STORES = b'{"count":1,"stores":[{"store":{"id":1,"address":"db-tikv-0:20160","state_name":"Up"},"status":{}}]}'


@pytest.mark.parametrize("lie", [Lie.TRUNCATED, Lie.UNDECODABLE, Lie.TOO_MANY_REQUESTS, Lie.SERVER_ERROR])
async def test_a_false_answer_is_no_list_of_stores(lie: Lie) -> None:
    """A list that cannot be believed must not look empty: pods would go with their data."""
    status = STATUS_CODES.get(lie, 200)
    body = SOME_STORES if lie in STATUS_CODES else change_document(lie, SOME_STORES) or b""
    head = b"HTTP/1.1 %d It\r\nContent-Length: %d\r\nConnection: close\r\n\r\n" % (status, len(body))
    async with serving(ScriptedServer(*[head + body] * 5), tls=server_tls(CA.issue(HOST), clients=CA.pem)) as port:
        assert isinstance(await stores(port, {KEY: secret()}), PdFailed)
