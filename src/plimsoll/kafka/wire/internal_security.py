"""Which parts of Cruise Control's security are on for a cluster: https, and the login of clients."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.kafka_security import read_internal_security

if TYPE_CHECKING:
    from plimsoll.objects.api.kafka import Kafka


def uses_tls(kafka: Kafka) -> bool:
    """Whether Cruise Control serves https. Raises `InvalidInput`."""
    return read_internal_security(kafka).is_encrypted and _is_on(kafka, "webserver.ssl.enable")


def uses_basic_authentication(kafka: Kafka) -> bool:
    """Whether clients of Cruise Control log in."""
    return _is_on(kafka, "webserver.security.enable")


def _is_on(kafka: Kafka, key: str) -> bool:
    """A switch of Cruise Control's configuration that is on unless it is set to false."""
    config = kafka.spec.cruise_control.config if kafka.spec.cruise_control is not None else None
    value = config.get(key, True) if isinstance(config, dict) else True
    return str(value).strip().lower() != "false"
