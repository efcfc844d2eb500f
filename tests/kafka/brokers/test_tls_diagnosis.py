"""Certificates that keep a client from the brokers are named: whose, and what is wrong with them."""

from __future__ import annotations

import asyncio
import ssl
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509

from plimsoll.kafka.brokers.connection_settings import ConnectionSettings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.ports import CREDENTIALS_REFUSED, KafkaRefused
from tests.kafka.brokers.tls_listeners import UNCLOSED, collect_sockets, open_tls_listener, show_certificate
from tests.kube.http.authorities import LOOPBACK, CertificateAuthority, KeyPair

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

pytestmark = UNCLOSED

OURS = CertificateAuthority("cluster-ca")
OTHER = CertificateAuthority("other-ca")
NAMESAKE = CertificateAuthority("cluster-ca")
LONG_AGO = (timedelta(days=-9), timedelta(days=-2))
NOT_YET = (timedelta(days=2), timedelta(days=9))
GOOD = OURS.issue(*LOOPBACK)


async def list_brokers(server: str, own: KeyPair | None = None) -> None:
    """By a client that trusts our authority."""
    context = ssl.create_default_context(cadata=OURS.pem.decode())
    if own is not None:
        show_certificate(context, own)
    settings = ConnectionSettings(
        bootstrap=(server,),
        security_protocol="SSL",
        ssl_context=context,
        certificate_pem=b"" if own is None else own.certificate_pem,
    )
    async with KafkaPythonAdmin(settings) as admin:
        await admin.describe_nodes()


@pytest.mark.parametrize(
    ("shown", "own"),
    [
        pytest.param(OTHER.issue(*LOOPBACK), None, id="unknown authority"),
        pytest.param(NAMESAKE.issue(*LOOPBACK), None, id="authority of the same name"),
        pytest.param(OURS.issue(*LOOPBACK, valid=LONG_AGO), None, id="expired"),
        pytest.param(OURS.issue(*LOOPBACK, valid=NOT_YET), None, id="not yet valid"),
        pytest.param(OURS.issue("elsewhere"), None, id="another host"),
        pytest.param(GOOD, OURS.issue(valid=LONG_AGO), id="our own expired"),
        pytest.param(GOOD, OURS.issue(valid=NOT_YET), id="our own not yet valid"),
        pytest.param(GOOD, OTHER.issue(), id="our own of an unknown authority"),
        pytest.param(GOOD, None, id="none of our own"),
    ],
)
def test_a_wrong_certificate_is_named(shown: KeyPair, own: KeyPair | None, reviewed: ReviewedSentences):
    clients = OURS if shown is GOOD else None
    with open_tls_listener(shown, clients) as server, pytest.raises(KafkaRefused) as raised:
        asyncio.run(list_brokers(server, own))
    collect_sockets()
    assert raised.value.code in CREDENTIALS_REFUSED
    sentence = str(raised.value)
    wrong = x509.load_pem_x509_certificate((own or shown).certificate_pem)
    for name, date in (("END", wrong.not_valid_after_utc), ("BEGIN", wrong.not_valid_before_utc)):
        sentence = sentence.replace(date.strftime("%Y-%m-%dT%H:%M:%SZ"), name)
    reviewed(sentence)
