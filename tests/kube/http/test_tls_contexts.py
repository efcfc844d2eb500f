"""Whom we believe and what we show, without a connection."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.access import Credential, Tls
from plimsoll.kube.errors import CredentialsFailed
from plimsoll.kube.http.tls_contexts import TlsContexts, build_context
from tests.kube.http.authorities import CertificateAuthority, KeyPair

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

CA = CertificateAuthority()


def showing(pair: KeyPair) -> Credential:
    return Credential(certificate_pem=pair.certificate_pem, key_pem=pair.key_pem)


def open_files() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


def test_only_the_given_authorities_are_believed():
    context = build_context(Tls(ca_pem=CA.pem))
    assert context.cert_store_stats()["x509"] == 1
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_REQUIRED, True)
    assert context.minimum_version >= ssl.TLSVersion.TLSv1_2


def test_remarks_in_any_language_between_authorities_do_no_harm():
    bundle = "# Größte Behörde\n".encode() + CA.pem + "# Zweite\xa0\n".encode() + CertificateAuthority("two").pem
    assert build_context(Tls(ca_pem=bundle)).cert_store_stats()["x509"] == 2


def test_any_certificate_is_accepted_on_demand():
    context = build_context(Tls(ca_pem=CA.pem, is_insecure=True))
    assert (context.verify_mode, context.check_hostname) == (ssl.CERT_NONE, False)


@pytest.mark.parametrize("ca_pem", [b"nothing", b"-----BEGIN CERTIFICATE-----\nbroken\n-----END CERTIFICATE-----\n"])
def test_authorities_that_are_none_are_refused_by_file(ca_pem: bytes, reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        build_context(Tls(ca_pem=ca_pem, ca_file="/etc/ca.crt"))
    reviewed(str(raised.value))


def test_a_context_is_kept_until_the_certificate_changes():
    contexts = TlsContexts(Tls(ca_pem=CA.pem))
    first, second = CA.issue(), CA.issue()
    kept = contexts.get_context(showing(first))
    assert contexts.get_context(showing(KeyPair(*first))) is kept
    assert contexts.get_context(Credential(certificate_pem=first[0], key_pem=first[1], headers={"A": "b"})) is kept
    assert contexts.get_context(showing(second)) is not kept


def test_loading_a_certificate_leaves_no_file_open():
    before = open_files()
    TlsContexts(Tls()).get_context(showing(CA.issue()))
    assert open_files() == before


@pytest.mark.parametrize(
    ("pair", "message"),
    [
        (KeyPair(CA.issue().certificate_pem, CA.issue().key_pem), "do not belong together"),
        (KeyPair(b"nothing", CA.issue().key_pem), "not usable PEM"),
        (KeyPair(CA.issue().certificate_pem, b"nothing"), "not usable PEM"),
        (CA.issue(passphrase=b"open sesame"), "is encrypted"),
    ],
)
def test_a_certificate_that_cannot_be_shown_is_a_clear_error_without_a_secret(pair: KeyPair, message: str):
    with pytest.raises(CredentialsFailed, match=message) as caught:
        TlsContexts(Tls()).get_context(showing(pair))
    assert "PRIVATE" not in str(caught.value)
