"""What users read when TLS fails: whose fault it is, what is in the certificate, and what mends it."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.access import Tls
from plimsoll.kube.http.addresses import ServerAddress
from plimsoll.kube.http.failures import Route
from plimsoll.kube.http.tls_failures import Presented, explain_distrust, explain_handshake_error

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

ROUTE = Route(ServerAddress.parse("https://10.1.2.3:6443"))
OURS = Tls(ca_pem=b"-", ca_file="/etc/our/ca.crt")
EXPIRED, NOT_YET, SELF_SIGNED, UNKNOWN_ISSUER, WRONG_NAME, WRONG_ADDRESS = 10, 9, 18, 20, 62, 64


def presented(names: tuple[str, ...] = ("kubernetes", "10.96.0.1")) -> Presented:
    begins, ends = datetime(2024, 1, 1, tzinfo=UTC), datetime(2025, 1, 1, tzinfo=UTC)
    return Presented(subject="CN=api", issuer="CN=their-ca", names=names, begins=begins, ends=ends)


def reported(code: int, tls: Tls = OURS, certificate: Presented | None = None, *, seen: bool = True) -> str:
    shown = (certificate or presented()) if seen else None
    return explain_distrust(code, "words of OpenSSL", shown, route=ROUTE, tls=tls)


@pytest.mark.parametrize("code", [EXPIRED, NOT_YET])
def test_a_certificate_out_of_its_time_is_reported_with_its_dates(code: int):
    assert "valid from 2024-01-01T00:00:00Z to 2025-01-01T00:00:00Z" in reported(code)
    assert "clock" in reported(code)


@pytest.mark.parametrize("code", [WRONG_NAME, WRONG_ADDRESS])
def test_a_wrong_name_is_reported_with_those_in_the_certificate_and_the_one_asked_for(
    code: int, reviewed: ReviewedSentences
):
    assert "is for kubernetes, 10.96.0.1, not for 10.1.2.3" in reported(code)
    assert "tls-server-name" in reported(code)
    assert "not for api.internal" in reported(code, Tls(server_name="api.internal"))
    reviewed(reported(code, OURS, presented(())))


def test_of_many_names_a_few_are_shown():
    names = tuple(f"n{number}" for number in range(40))
    assert "n11 and 28 more, not for" in reported(WRONG_NAME, OURS, presented(names))


@pytest.mark.parametrize(
    ("tls", "where"),
    [
        (OURS, "the authorities in /etc/our/ca.crt"),
        (Tls(ca_pem=b"-"), "the authorities in certificate-authority-data"),
        (Tls(), "the authorities of this machine"),
    ],
)
def test_an_unknown_authority_is_reported_with_those_we_believe(tls: Tls, where: str):
    assert f"signed by CN=their-ca, which is not among {where}" in reported(UNKNOWN_ISSUER, tls)
    assert f"self-signed (CN=api) and not among {where}" in reported(SELF_SIGNED, tls)
    assert "certificate-authority" in reported(UNKNOWN_ISSUER, tls)


@pytest.mark.parametrize("code", [EXPIRED, NOT_YET, SELF_SIGNED, UNKNOWN_ISSUER, WRONG_NAME])
def test_what_is_wrong_is_reported_also_without_the_certificate_at_hand(code: int):
    without = reported(code, seen=False)
    assert without.startswith("the server's certificate")
    assert "None" not in without


def test_for_what_we_have_no_words_openssl_has_some(reviewed: ReviewedSentences):
    reviewed(reported(26))


@pytest.mark.parametrize(
    ("reason", "part"),
    [
        ("WRONG_VERSION_NUMBER", "does not speak TLS; if it speaks plain HTTP, its address is http://10.1.2.3:6443"),
        ("TLSV13_ALERT_CERTIFICATE_REQUIRED", "asks for a client certificate"),
        ("TLSV1_ALERT_UNKNOWN_CA", "does not know the authority of our client certificate"),
        ("SSLV3_ALERT_CERTIFICATE_EXPIRED", "our client certificate has expired"),
        ("SSLV3_ALERT_HANDSHAKE_FAILURE", "client-certificate"),
        ("TLSV1_UNRECOGNIZED_NAME", "tls-server-name"),
        ("TLSV1_ALERT_PROTOCOL_VERSION", "version 1.2"),
        ("SOMETHING_NEW", "SOMETHING_NEW"),
        ("", "no reason given"),
    ],
)
def test_every_end_of_a_handshake_has_its_words(reason: str, part: str):
    assert part in explain_handshake_error(reason, route=ROUTE)
