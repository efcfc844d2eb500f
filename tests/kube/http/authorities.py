"""Certificate authorities made for a test, and the certificates they sign: good ones and all the bad ones."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from typing import NamedTuple, Self

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

LOOPBACK = ("127.0.0.1", "localhost")


class KeyPair(NamedTuple):
    certificate_pem: bytes
    key_pem: bytes


class CertificateAuthority:
    """Signs certificates, its own first."""

    def __init__(self, name: str = "test-ca") -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.name = _name(name)
        now = datetime.now(UTC)
        builder = _builder(self.name, self.name, self.key, (now - timedelta(days=900), now + timedelta(days=900)))
        builder = builder.add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        self.pem = _pem(builder.sign(self.key, hashes.SHA256()))

    @classmethod
    def load(cls, certificate_pem: bytes, key_pem: bytes) -> Self:
        """An authority that was made elsewhere."""
        key = serialization.load_pem_private_key(key_pem, password=None)
        assert isinstance(key, ec.EllipticCurvePrivateKey)
        loaded = cls.__new__(cls)
        loaded.key, loaded.pem = key, certificate_pem
        loaded.name = x509.load_pem_x509_certificate(certificate_pem).subject
        return loaded

    def issue(
        self,
        *names: str,
        subject: str = "server",
        valid: tuple[timedelta, timedelta] = (timedelta(days=-1), timedelta(days=1)),
        passphrase: bytes = b"",
    ) -> KeyPair:
        """`valid` is counted from now."""
        key = ec.generate_private_key(ec.SECP256R1())
        now = datetime.now(UTC)
        builder = _builder(_name(subject), self.name, key, (now + valid[0], now + valid[1]))
        if names:
            alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
            builder = builder.add_extension(alternatives, critical=False)
        return KeyPair(_pem(builder.sign(self.key, hashes.SHA256())), _key_pem(key, passphrase))


def self_signed(*names: str) -> KeyPair:
    key = ec.generate_private_key(ec.SECP256R1())
    now = datetime.now(UTC)
    builder = _builder(_name("lonely"), _name("lonely"), key, (now - timedelta(days=1), now + timedelta(days=1)))
    alternatives = x509.SubjectAlternativeName([_alternative(name) for name in names])
    return KeyPair(_pem(builder.add_extension(alternatives, critical=False).sign(key, hashes.SHA256())), _key_pem(key))


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, valid: tuple[datetime, datetime]
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(valid[0])
        .not_valid_after(valid[1])
    )


def _name(common_name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, common_name)])


def _alternative(name: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(ip_address(name))
    except ValueError:
        return x509.DNSName(name)


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _key_pem(key: ec.EllipticCurvePrivateKey, passphrase: bytes = b"") -> bytes:
    encryption = serialization.BestAvailableEncryption(passphrase) if passphrase else serialization.NoEncryption()
    return key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, encryption)
