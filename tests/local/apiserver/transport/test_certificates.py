"""What a server shows its clients: made once, kept, renewed in time, readable by no other user."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec

from plimsoll.local.apiserver.data_directory import DataDirectory
from plimsoll.local.apiserver.storage import StoreCorrupt
from plimsoll.local.apiserver.transport.certificates import Certificates, load_server_certificates

if TYPE_CHECKING:
    from pathlib import Path

# Handshakes ask the real clock, so the scenario is written around it.
NOW = datetime.now(UTC).replace(microsecond=0)
DAY = timedelta(days=1)


@pytest.fixture
def directory(tmp_path: Path) -> DataDirectory:
    return DataDirectory(tmp_path / "data")


def made(directory: DataDirectory, *, host: str = "127.0.0.1", now: datetime = NOW) -> Certificates:
    return load_server_certificates(directory, host=host, now=now)


def authority(certificates: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificates.ca_pem)


def shown(certificates: Certificates) -> x509.Certificate:
    return x509.load_pem_x509_certificate(certificates.certificate_file.read_bytes())


def names(certificate: x509.Certificate) -> list[str]:
    named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return [str(name.value) for name in named]


def test_the_first_start_makes_an_authority_for_ten_years_and_a_certificate_for_one(directory: DataDirectory):
    certificates = made(directory)
    ca, server = authority(certificates), shown(certificates)
    assert certificates.renewed
    assert ca.not_valid_after_utc == NOW + 3650 * DAY
    assert server.not_valid_after_utc == NOW + 365 * DAY
    assert ca.not_valid_before_utc <= NOW - timedelta(minutes=5)
    assert names(server) == ["127.0.0.1", "localhost", "::1"]
    server.verify_directly_issued_by(ca)


def test_keys_are_p_256(directory: DataDirectory):
    certificates = made(directory)
    for certificate in (authority(certificates), shown(certificates)):
        key = certificate.public_key()
        assert isinstance(key, ec.EllipticCurvePublicKey)
        assert isinstance(key.curve, ec.SECP256R1)


def test_the_authority_may_sign_and_the_server_may_not(directory: DataDirectory):
    certificates = made(directory)
    for certificate, signs in ((authority(certificates), True), (shown(certificates), False)):
        constraints = certificate.extensions.get_extension_for_class(x509.BasicConstraints)
        assert (constraints.value.ca, constraints.critical) == (signs, True)
        assert certificate.extensions.get_extension_for_class(x509.KeyUsage).value.key_cert_sign is signs


def test_files_are_for_their_owner_only(directory: DataDirectory):
    made(directory)
    secrets = directory.get_secret_path("ca.key").parent
    assert secrets.stat().st_mode & 0o777 == 0o700
    assert {file.name: oct(file.stat().st_mode & 0o777) for file in secrets.iterdir()} == dict.fromkeys(
        ("ca.crt", "ca.key", "server.crt", "server.key"), "0o600"
    )


def test_a_key_that_others_may_read_is_closed_to_them(directory: DataDirectory):
    made(directory)
    key = directory.get_secret_path("server.key")
    key.chmod(0o644)
    made(directory)
    assert key.stat().st_mode & 0o777 == 0o600


def test_a_later_start_keeps_everything(directory: DataDirectory):
    first = made(directory)
    before = first.certificate_file.read_bytes()
    second = made(directory, now=NOW + 300 * DAY)
    assert not second.renewed
    assert (second.ca_pem, second.certificate_file.read_bytes()) == (first.ca_pem, before)


@pytest.mark.parametrize("days", [336, 364, 366, 1000])
def test_a_certificate_that_ends_within_a_month_is_renewed_by_the_same_authority(directory: DataDirectory, days: int):
    first = made(directory)
    later = made(directory, now=NOW + days * DAY)
    assert later.renewed
    assert later.ca_pem == first.ca_pem
    assert shown(later).not_valid_after_utc == NOW + (days + 365) * DAY


def test_an_authority_that_ends_within_a_month_is_replaced_with_what_it_signed(directory: DataDirectory):
    first = made(directory)
    later = made(directory, now=NOW + 3630 * DAY)
    assert later.ca_pem != first.ca_pem
    shown(later).verify_directly_issued_by(authority(later))


def test_a_certificate_never_outlives_its_authority(directory: DataDirectory):
    made(directory)
    later = made(directory, now=NOW + 3600 * DAY)
    assert shown(later).not_valid_after_utc == authority(later).not_valid_after_utc


def test_another_address_gets_another_certificate(directory: DataDirectory):
    first = made(directory)
    other = made(directory, host="10.1.2.3")
    assert other.renewed
    assert other.ca_pem == first.ca_pem
    assert names(shown(other)) == ["127.0.0.1", "localhost", "::1", "10.1.2.3"]
    assert not made(directory, host="localhost").renewed
    assert not made(directory, host="0.0.0.0").renewed


@pytest.mark.parametrize("lost", ["ca.crt", "ca.key", "server.crt", "server.key"])
def test_half_a_pair_is_made_again(directory: DataDirectory, lost: str):
    made(directory)
    directory.get_secret_path(lost).unlink()
    again = made(directory)
    assert again.renewed
    shown(again).verify_directly_issued_by(authority(again))
    again.build_ssl_context()


def test_a_key_of_another_certificate_is_noticed(directory: DataDirectory, tmp_path: Path):
    made(directory)
    other = DataDirectory(tmp_path / "other")
    made(other)
    directory.write_secret("server.key", other.read_secret("server.key") or b"")
    again = made(directory)
    assert again.renewed
    again.build_ssl_context()


@pytest.mark.parametrize("name", ["ca.crt", "ca.key", "server.crt", "server.key"])
def test_a_damaged_file_is_named_with_what_to_do(directory: DataDirectory, name: str):
    made(directory)
    directory.write_secret(name, b"nonsense")
    with pytest.raises(StoreCorrupt, match=rf"{name}: is not a .* in PEM form; remove it, and a new one is made"):
        made(directory)


def test_tls_is_1_2_or_newer_and_alpn_is_http_1_1_only(directory: DataDirectory):
    context = made(directory).build_ssl_context()
    assert context.minimum_version is ssl.TLSVersion.TLSv1_2
    assert handshake(context, ssl.create_default_context(cadata=made(directory).ca_pem.decode())) == "http/1.1"


def test_a_client_of_another_authority_refuses_it(directory: DataDirectory, tmp_path: Path):
    other = made(DataDirectory(tmp_path / "other"))
    context = made(directory).build_ssl_context()
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(context, ssl.create_default_context(cadata=other.ca_pem.decode()))


def handshake(server: ssl.SSLContext, client: ssl.SSLContext) -> str | None:
    """Both sides in memory; gives the protocol they agreed on."""
    client.set_alpn_protocols(["h2", "http/1.1"])
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    asking = client.wrap_bio(to_client, to_server, server_hostname="127.0.0.1")
    answering = server.wrap_bio(to_server, to_client, server_side=True)
    pending = [asking, answering]
    while pending:
        for side in tuple(pending):
            try:
                side.do_handshake()
                pending.remove(side)
            except ssl.SSLWantReadError:
                continue
    return asking.selected_alpn_protocol()
