"""Ids in Kafka's form: 16 bytes as 22 characters."""

from __future__ import annotations

import base64
from contextlib import suppress
from typing import TYPE_CHECKING
from uuid import UUID

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy


def build_cluster_id(uid: str) -> str:
    """The cluster id of a Kafka object, the same for the same uid."""
    raw = uid.encode().ljust(16, b"\0")[:16]
    with suppress(ValueError):
        raw = UUID(uid).bytes
    return _format_id(raw)


def generate_kafka_id(entropy: Entropy) -> str:
    """A random id. Kafka, too, makes none that begins with a dash."""
    while (text := _format_id(UUID(entropy.generate_uid()).bytes)).startswith("-"):
        pass
    return text


def _format_id(raw: bytes) -> str:
    return base64.urlsafe_b64encode(raw).decode().rstrip("=")
