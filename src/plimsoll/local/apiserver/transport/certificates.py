"""The server's own certificate authority and its certificate: made once, kept, renewed in time.

Kubernetes clients send no token without TLS, and believe only the authority in their kubeconfig. The authority signs
nothing but the server's certificate. Keys are P-256; every private file has mode 0600.
"""

from __future__ import annotations

import ssl
from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from plimsoll.web.guards import LOOPBACK_NAMES, WILDCARDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from plimsoll.local.apiserver.data_directory import DataDirectory

CA_LIFETIME: Final = timedelta(days=3650)
SERVER_LIFETIME: Final = timedelta(days=365)
RENEW_BEFORE: Final = timedelta(days=30)
# Clocks of machines differ; a certificate that is valid from the next minute on is useless.
_BACKDATED: Final = timedelta(hours=1)

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
SERVER_CERTIFICATE: Final = "server.crt"
SERVER_KEY: Final = "server.key"


class Pair(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


class Certificates(NamedTuple):
    """The certificates of a running server. `renewed`: the server's certificate is a new one."""

    ca_pem: bytes
    certificate_file: Path
    key_file: Path
    renewed: bool

    def build_ssl_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        context.set_alpn_protocols(["http/1.1"])
        self.load_into(context)
        return context

    def load_into(self, context: ssl.SSLContext) -> None:
        """Also into one in use: handshakes from now on show the new certificate."""
        context.load_cert_chain(self.certificate_file, self.key_file)


def load_server_certificates(directory: DataDirectory, *, host: str, now: datetime) -> Certificates:
    """Those of the directory; made if there are none, renewed if they end soon or do not name `host`."""
    names = list_names(host)
    authority = _load(directory, CA_CERTIFICATE, CA_KEY)
    if authority is None or _ends_soon(authority.certificate, now):
        authority = _make_authority(now)
        _store(directory, authority, CA_CERTIFICATE, CA_KEY)
    server = _load(directory, SERVER_CERTIFICATE, SERVER_KEY)
    renewed = server is None or not _is_valid(server.certificate, authority=authority, names=names, now=now)
    if renewed:
        _store(directory, _issue(authority, names=names, now=now), SERVER_CERTIFICATE, SERVER_KEY)
    return Certificates(
        ca_pem=_encode_certificate(authority.certificate),
        certificate_file=directory.get_secret_path(SERVER_CERTIFICATE),
        key_file=directory.get_secret_path(SERVER_KEY),
        renewed=renewed,
    )


def list_names(host: str) -> tuple[str, ...]:
    """What clients may call a server that is bound to `host`."""
    return LOOPBACK_NAMES if host in LOOPBACK_NAMES or host in WILDCARDS else (*LOOPBACK_NAMES, host)


# ---- making


def _make_authority(now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _build_name("plimsoll-ca")
    builder = (
        _build_builder(subject=name, issuer=name, key=key, ends=now + CA_LIFETIME, now=now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_build_key_usage(signs_certificates=True), critical=True)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def _issue(authority: Pair, *, names: Sequence[str], now: datetime) -> Pair:
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    ends = min(now + SERVER_LIFETIME, issuer.not_valid_after_utc)
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    builder = (
        _build_builder(subject=_build_name("plimsoll-apiserver"), issuer=issuer.subject, key=key, ends=ends, now=now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_build_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.SubjectAlternativeName([_build_alternative_name(name) for name in names]), critical=False)
        .add_extension(issued_by, critical=False)
    )
    return Pair(builder.sign(authority.key, hashes.SHA256()), key)


def _build_builder(
    *, subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, ends: datetime, now: datetime
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - _BACKDATED)
        .not_valid_after(ends)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
    )


def _build_name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _build_alternative_name(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _build_key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=not signs_certificates,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )


# ---- judging


def _ends_soon(certificate: x509.Certificate, now: datetime) -> bool:
    return certificate.not_valid_after_utc - now < RENEW_BEFORE


def _is_valid(certificate: x509.Certificate, *, authority: Pair, names: Sequence[str], now: datetime) -> bool:
    if _ends_soon(certificate, now) or certificate.not_valid_before_utc > now:
        return False
    try:
        certificate.verify_directly_issued_by(authority.certificate)
        named = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except (ValueError, TypeError, InvalidSignature, x509.ExtensionNotFound):
        return False
    return set(named) >= {_build_alternative_name(name) for name in names}


# ---- keeping


def _store(directory: DataDirectory, pair: Pair, certificate_name: str, key_name: str) -> None:
    # In this order: a stop in between leaves a pair that does not match, and is made again.
    directory.write_secret(key_name, _encode_key(pair.key))
    directory.write_secret(certificate_name, _encode_certificate(pair.certificate))


def _load(directory: DataDirectory, certificate_name: str, key_name: str) -> Pair | None:
    """What is kept; None if there is nothing, or half of it."""
    certificate_pem, key_pem = directory.read_secret(certificate_name), directory.read_secret(key_name)
    if certificate_pem is None or key_pem is None:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
    except ValueError:
        raise directory.build_damaged_error(certificate_name, "is not a certificate in PEM form") from None
    key = _load_key(key_pem)
    if key is None:
        raise directory.build_damaged_error(key_name, "is not a P-256 key in PEM form")
    return Pair(certificate, key) if certificate.public_key() == key.public_key() else None


def _load_key(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1) else None


def _encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def _encode_certificate(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
