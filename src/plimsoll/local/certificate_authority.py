"""Certificate authorities made here, and the certificates that they issue. Keys are P-256."""

from __future__ import annotations

from datetime import timedelta
from ipaddress import ip_address
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

CA_LIFETIME: Final = timedelta(days=3650)
LIFETIME: Final = timedelta(days=365)
# Clocks of machines differ; a certificate that is valid from the next minute on is useless.
_BACKDATED: Final = timedelta(hours=1)


class Pair(NamedTuple):
    """A certificate and its key."""

    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey


def make_authority(name: str, now: datetime) -> Pair:
    """A new authority, which signs itself."""
    key = ec.generate_private_key(ec.SECP256R1())
    subject = _build_name(name)
    builder = (
        _build_builder(subject=subject, issuer=subject, key=key, ends=now + CA_LIFETIME, now=now)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(_build_key_usage(signs_certificates=True), critical=True)
    )
    return Pair(builder.sign(key, hashes.SHA256()), key)


def issue_certificate(
    authority: Pair, subject: str, *, now: datetime, names: Sequence[str] = (), is_client: bool = False
) -> Pair:
    """A certificate of a server with these names or addresses. `is_client`: clients may show it, too."""
    key = ec.generate_private_key(ec.SECP256R1())
    issuer = authority.certificate
    ends = min(now + LIFETIME, issuer.not_valid_after_utc)
    issued_by = x509.AuthorityKeyIdentifier.from_issuer_public_key(authority.key.public_key())
    usages = [ExtendedKeyUsageOID.SERVER_AUTH, *([ExtendedKeyUsageOID.CLIENT_AUTH] if is_client else [])]
    builder = (
        _build_builder(subject=_build_name(subject), issuer=issuer.subject, key=key, ends=ends, now=now)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(_build_key_usage(signs_certificates=False), critical=True)
        .add_extension(x509.ExtendedKeyUsage(usages), critical=False)
        .add_extension(issued_by, critical=False)
    )
    if names:
        alternatives = x509.SubjectAlternativeName([build_alternative_name(name) for name in names])
        builder = builder.add_extension(alternatives, critical=False)
    return Pair(builder.sign(authority.key, hashes.SHA256()), key)


def decode_key(pem: bytes) -> ec.EllipticCurvePrivateKey | None:
    """A P-256 key in PEM form; None: it is none."""
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError):
        return None
    return key if isinstance(key, ec.EllipticCurvePrivateKey) and isinstance(key.curve, ec.SECP256R1) else None


def encode_key(key: ec.EllipticCurvePrivateKey) -> bytes:
    encoding, form = serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8
    return key.private_bytes(encoding, form, serialization.NoEncryption())


def encode_certificate(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


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


def build_alternative_name(name: str) -> x509.GeneralName:
    """A host name or address as a certificate names it."""
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
