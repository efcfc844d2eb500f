"""Servers that are not to be believed, and what mends it."""

from __future__ import annotations

import ssl
from datetime import timedelta

import pytest

from plimsoll.kube.access import Credential, Tls
from plimsoll.kube.errors import NotSent, TlsRefused, UnknownAuthority
from plimsoll.kube.transport import Request
from tests.e2e.kube_http.servers import (
    ScriptedServer,
    ServerConnection,
    demanding_client_certificates,
    reaching,
    secure,
    sent,
    server_tls,
    serving,
)
from tests.kube.http.authorities import LOOPBACK, CertificateAuthority, KeyPair, self_signed

pytestmark = pytest.mark.asyncio

CA = CertificateAuthority("cluster-ca")
OURS = Tls(ca_pem=CA.pem, ca_file="/home/me/ca.crt")


async def refusal(pair: KeyPair, tls: Tls = OURS, *, kind: type[TlsRefused] = TlsRefused) -> str:
    application = ScriptedServer()
    async with serving(application, tls=server_tls(pair)) as port:
        with pytest.raises(TlsRefused) as caught:
            await sent(secure(port, tls))
        assert str(caught.value).startswith(f"https://127.0.0.1:{port}: ")
        assert isinstance(caught.value, kind)
    assert application.heads == []
    return str(caught.value)


async def accepted(pair: KeyPair, tls: Tls) -> bool:
    async with serving(ScriptedServer(), tls=server_tls(pair)) as port:
        return (await sent(secure(port, tls))).is_success


async def test_the_right_authority_and_the_right_name_are_accepted():
    assert await accepted(CA.issue(*LOOPBACK), OURS)


async def test_a_certificate_of_another_authority_is_refused():
    message = await refusal(CertificateAuthority("their-ca").issue(*LOOPBACK), kind=UnknownAuthority)
    assert "signed by CN=their-ca, which is not among the authorities in /home/me/ca.crt" in message
    assert "certificate-authority" in message


async def test_an_authority_of_the_same_name_with_another_key_is_distinguished():
    message = await refusal(CertificateAuthority("cluster-ca").issue(*LOOPBACK))
    assert "signed by another CN=cluster-ca than the one among the authorities in /home/me/ca.crt" in message


async def test_the_authorities_of_the_machine_are_believed_where_none_are_given():
    assert "not among the authorities of this machine" in await refusal(CA.issue(*LOOPBACK), Tls())


async def test_an_expired_certificate_is_refused_with_its_dates():
    message = await refusal(CA.issue(*LOOPBACK, valid=(timedelta(days=-20), timedelta(days=-10))))
    assert "authority" not in message
    assert "has expired (its certificate is valid from 20" in message


async def test_a_certificate_of_the_future_is_refused_with_its_dates():
    message = await refusal(CA.issue(*LOOPBACK, valid=(timedelta(days=10), timedelta(days=20))))
    assert "is not yet valid (its certificate is valid from 20" in message


async def test_a_wrong_name_is_refused_and_tls_server_name_mends_it():
    pair = CA.issue("kubernetes.default.svc", "10.96.0.1")
    assert "is for kubernetes.default.svc, 10.96.0.1, not for 127.0.0.1" in await refusal(pair)
    assert await accepted(pair, Tls(ca_pem=CA.pem, server_name="kubernetes.default.svc"))


async def test_the_common_name_is_no_name():
    assert "is for no name at all, not for 127.0.0.1" in await refusal(CA.issue(subject="127.0.0.1"))


async def test_a_self_signed_certificate_is_refused_unless_it_is_the_one_we_know():
    pair = self_signed(*LOOPBACK)
    assert "is self-signed (CN=lonely)" in await refusal(pair)
    assert await accepted(pair, Tls(ca_pem=pair.certificate_pem))


@pytest.mark.parametrize(
    "pair",
    [
        CertificateAuthority("their-ca").issue(*LOOPBACK),
        CA.issue("elsewhere"),
        CA.issue(*LOOPBACK, valid=(timedelta(days=-20), timedelta(days=-10))),
        self_signed("elsewhere"),
    ],
    ids=["wrong authority", "wrong name", "expired", "self-signed"],
)
async def test_insecure_accepts_anything(pair: KeyPair):
    assert await accepted(pair, Tls(ca_pem=CA.pem, is_insecure=True))


async def test_a_server_of_plain_http_is_reported():
    async def grumbles(peer: ServerConnection) -> None:
        await peer.reader.read(100)
        await peer.say(b"HTTP/1.1 400 Bad Request\r\nContent-Length: 0\r\n\r\n")

    async with serving(grumbles) as port:
        with pytest.raises(TlsRefused, match=rf"does not speak TLS; .* its address is http://127\.0\.0\.1:{port}"):
            await sent(secure(port, OURS))


async def test_a_server_that_hangs_up_in_the_handshake_may_be_asked_again():
    async def hangs_up(peer: ServerConnection) -> None:
        await peer.reader.read(100)

    async with serving(hangs_up) as port:
        with pytest.raises(NotSent) as caught:
            await sent(secure(port, OURS))
    assert not isinstance(caught.value, TlsRefused)


async def test_a_server_that_never_answers_the_handshake_was_sent_nothing():
    async def silent(peer: ServerConnection) -> None:
        await peer.reader.read()

    async with serving(silent) as port:
        with pytest.raises(NotSent, match=r"after 0\.2 s still waiting for a connection"):
            await sent(secure(port, OURS), timeout_s=0.2)


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
async def test_the_client_certificate_is_shown(version: ssl.TLSVersion):
    mine = CA.issue(subject="me")
    seen: list[object] = []

    async def looks(peer: ServerConnection) -> None:
        seen.append(peer.writer.get_extra_info("peercert")["subject"])
        await ScriptedServer()(peer)

    async with serving(looks, tls=server_tls(CA.issue(*LOOPBACK), clients=CA.pem, version=version)) as port:
        shown = Credential(certificate_pem=mine.certificate_pem, key_pem=mine.key_pem)
        assert (await sent(secure(port, OURS, credential=shown))).is_success
    assert seen == [((("commonName", "me"),),)]


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize(
    ("authority", "part"), [(None, "client-certificate"), (CertificateAuthority("x"), "client certificate")]
)
async def test_a_server_that_does_not_accept_us_is_reported(
    authority: CertificateAuthority | None, part: str, version: ssl.TLSVersion
):
    mine = authority.issue(subject="me") if authority else KeyPair(b"", b"")
    with demanding_client_certificates(server_tls(CA.issue(*LOOPBACK), clients=CA.pem, version=version)) as port:
        shown = Credential(certificate_pem=mine.certificate_pem, key_pem=mine.key_pem)
        with pytest.raises(TlsRefused, match=part):
            await sent(secure(port, OURS, credential=shown))


async def test_a_new_client_certificate_is_shown_on_a_new_connection():
    class Rotating:
        def __init__(self) -> None:
            self.pair = CA.issue(subject="first")

        async def get_current(self) -> Credential:
            return Credential(certificate_pem=self.pair.certificate_pem, key_pem=self.pair.key_pem)

        def invalidate(self, _credential: Credential) -> None:
            raise AssertionError

    credentials = Rotating()
    seen: list[str] = []

    async def looks(peer: ServerConnection) -> None:
        seen.append(peer.writer.get_extra_info("peercert")["subject"][0][0][1])
        await ScriptedServer()(peer)

    async with serving(looks, tls=server_tls(CA.issue(*LOOPBACK), clients=CA.pem)) as port:
        access = secure(port, OURS)
        async with reaching(type(access)(server=access.server, tls=OURS, credentials=credentials)) as transport:
            await transport.send(Request("GET", "/"))
            await transport.send(Request("GET", "/"))
            credentials.pair = CA.issue(subject="second")
            await transport.send(Request("GET", "/"))
    assert seen == ["first", "second"]
