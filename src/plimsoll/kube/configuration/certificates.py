"""Certificates and keys in PEM, validated before a connection fails on them.

Accepts what Go's client accepts: other blocks in the same text are skipped (the kubelet keeps certificate and key in
one file, openssl writes curve parameters before a key), and text between blocks is a comment.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from cryptography import x509
from cryptography.exceptions import UnsupportedAlgorithm
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat, load_pem_private_key

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from datetime import datetime

_BLOCK: Final = re.compile(rb"-----BEGIN ([A-Z0-9 ]+)-----\r?\n.*?-----END \1-----", re.DOTALL)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClientPair:
    """A client's certificate with its chain, and its key."""

    certificate_pem: bytes = field(repr=False)
    key_pem: bytes = field(repr=False)
    expires_at: datetime


def build_client_pair(certificate: bytes, key: bytes) -> ClientPair:
    """Validate the pair. The path of an InvalidInput names the invalid half: `certificate` or `key`."""
    chain = _find_certificates(certificate)
    keys = _find_keys(key)
    if not chain:
        raise InvalidInput("holds no certificate in PEM", path="certificate")
    if not keys:
        raise InvalidInput("holds no private key in PEM", path="key")
    try:
        leaf = x509.load_pem_x509_certificate(chain[0])
        certified = leaf.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput("is not a readable certificate", path="certificate") from None
    if _get_public_part(keys[0]) != certified:
        raise InvalidInput("does not belong to the certificate", path="key")
    return ClientPair(
        certificate_pem=_join_blocks(chain), key_pem=_join_blocks(keys[:1]), expires_at=leaf.not_valid_after_utc
    )


def read_expiry(certificate: bytes) -> datetime | None:
    """When the first certificate of the text expires; None without a certificate."""
    chain = _find_certificates(certificate)
    try:
        return x509.load_pem_x509_certificate(chain[0]).not_valid_after_utc if chain else None
    except ValueError:
        return None


def read_authorities(pem: bytes) -> bytes:
    """The certificates of a bundle that can be read; InvalidInput if there is none."""
    found = _find_certificates(pem)
    if not found:
        raise InvalidInput("holds no certificate in PEM")
    usable = [block for block in found if _is_readable(block)]
    if not usable:
        raise InvalidInput("holds no readable certificate")
    return _join_blocks(usable)


def _get_public_part(key: bytes) -> bytes:
    try:
        private = load_pem_private_key(key, password=None)
    except TypeError:  # what `cryptography` raises for an encrypted key
        raise InvalidInput("is protected by a password, which is not supported", path="key") from None
    except (ValueError, UnsupportedAlgorithm):
        raise InvalidInput("is not a readable private key", path="key") from None
    return private.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _is_readable(block: bytes) -> bool:
    try:
        x509.load_pem_x509_certificate(block)
    except (ValueError, UnsupportedAlgorithm):
        return False
    return True


def _find_certificates(pem: bytes) -> list[bytes]:
    return [block[0] for block in _BLOCK.finditer(pem) if block[1] == b"CERTIFICATE"]


def _find_keys(pem: bytes) -> list[bytes]:
    """Find private keys of any kind: `RSA PRIVATE KEY`, `EC PRIVATE KEY`, `ENCRYPTED PRIVATE KEY`."""
    return [block[0] for block in _BLOCK.finditer(pem) if block[1].endswith(b"PRIVATE KEY")]


def _join_blocks(blocks: list[bytes]) -> bytes:
    return b"".join(block + b"\n" for block in blocks)
