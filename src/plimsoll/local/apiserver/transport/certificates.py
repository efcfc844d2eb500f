"""The server's own certificate authority and its certificate: made once, kept, renewed in time.

Kubernetes clients send no token without TLS, and believe only the authority in their kubeconfig. The authority signs
nothing but the server's certificate. Keys are P-256; every private file has mode 0600.
"""

from __future__ import annotations

import ssl
from datetime import timedelta
from typing import TYPE_CHECKING, Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature

from plimsoll.local.certificate_authority import (
    Pair,
    build_alternative_name,
    decode_key,
    encode_certificate,
    encode_key,
    issue_certificate,
    make_authority,
)
from plimsoll.web.guards import LOOPBACK_NAMES, WILDCARDS

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from pathlib import Path

    from plimsoll.local.apiserver.data_directory import DataDirectory

RENEW_BEFORE: Final = timedelta(days=30)

CA_CERTIFICATE: Final = "ca.crt"
CA_KEY: Final = "ca.key"
SERVER_CERTIFICATE: Final = "server.crt"
SERVER_KEY: Final = "server.key"


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
        authority = make_authority("plimsoll-ca", now)
        _store(directory, authority, CA_CERTIFICATE, CA_KEY)
    server = _load(directory, SERVER_CERTIFICATE, SERVER_KEY)
    renewed = server is None or not _is_valid(server.certificate, authority=authority, names=names, now=now)
    if renewed:
        issued = issue_certificate(authority, "plimsoll-apiserver", names=names, now=now)
        _store(directory, issued, SERVER_CERTIFICATE, SERVER_KEY)
    return Certificates(
        ca_pem=encode_certificate(authority.certificate),
        certificate_file=directory.get_secret_path(SERVER_CERTIFICATE),
        key_file=directory.get_secret_path(SERVER_KEY),
        renewed=renewed,
    )


def list_names(host: str) -> tuple[str, ...]:
    """What clients may call a server that is bound to `host`."""
    return LOOPBACK_NAMES if host in LOOPBACK_NAMES or host in WILDCARDS else (*LOOPBACK_NAMES, host)


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
    return set(named) >= {build_alternative_name(name) for name in names}


# ---- keeping


def _store(directory: DataDirectory, pair: Pair, certificate_name: str, key_name: str) -> None:
    # In this order: a stop in between leaves a pair that does not match, and is made again.
    directory.write_secret(key_name, encode_key(pair.key))
    directory.write_secret(certificate_name, encode_certificate(pair.certificate))


def _load(directory: DataDirectory, certificate_name: str, key_name: str) -> Pair | None:
    """What is kept; None if there is nothing, or half of it."""
    certificate_pem, key_pem = directory.read_secret(certificate_name), directory.read_secret(key_name)
    if certificate_pem is None or key_pem is None:
        return None
    try:
        certificate = x509.load_pem_x509_certificate(certificate_pem)
    except ValueError:
        raise directory.build_damaged_error(certificate_name, "is not a certificate in PEM form") from None
    key = decode_key(key_pem)
    if key is None:
        raise directory.build_damaged_error(key_name, "is not a P-256 key in PEM form")
    return Pair(certificate, key) if certificate.public_key() == key.public_key() else None
