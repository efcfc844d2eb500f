"""How the components of a Kafka cluster speak to each other: with TLS and client certificates, or without.

Strimzi 1.3 reads the annotation `strimzi.io/internal-cluster-security` and mirrors it in `status.clusterSecurity`.
Without either, both are on. Only the word `none` switches something off: a word that is not known must not connect
without encryption.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from plimsoll.objects.api.kafka import Kafka

INTERNAL_SECURITY_ANNOTATION: Final = "strimzi.io/internal-cluster-security"
_NONE: Final = "none"
_ANNOTATION_PATH: Final = f"metadata.annotations[{INTERNAL_SECURITY_ANNOTATION}]"


class InternalSecurity(Value):
    """The security of connections within a cluster."""

    is_encrypted: bool = True
    is_authenticated: bool = True
    """Clients show a certificate of the cluster's authority."""


def read_internal_security(kafka: Kafka) -> InternalSecurity:
    """The security of a cluster. Raises `InvalidInput` with the path of the field."""
    written = kafka.metadata.annotations.get(INTERNAL_SECURITY_ANNOTATION)
    if written is not None:
        return _read_security(_decode(written), _ANNOTATION_PATH)
    if kafka.status.cluster_security is not None:
        return _read_security(kafka.status.cluster_security, "status.clusterSecurity")
    return InternalSecurity()


def _decode(written: str) -> Any:
    try:
        return msgspec.json.decode(written.encode())
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise InvalidInput(f"is not JSON: {error}", path=_ANNOTATION_PATH) from None


def _read_security(content: Any, path: str) -> InternalSecurity:
    is_encrypted = _read_type(content, "encryption", path) != _NONE
    is_authenticated = _read_type(content, "authentication", path) != _NONE
    return InternalSecurity(is_encrypted=is_encrypted, is_authenticated=is_encrypted and is_authenticated)


def _read_type(content: Any, key: str, path: str) -> str:
    if not isinstance(content, dict):
        raise InvalidInput("must be an object with encryption and authentication", path=path)
    part = content.get(key)
    if part is None:
        return ""
    kind = part.get("type", "") if isinstance(part, dict) else None
    if not isinstance(kind, str):
        raise InvalidInput('must be an object with a "type"', path=f"{path}.{key}")
    return kind
