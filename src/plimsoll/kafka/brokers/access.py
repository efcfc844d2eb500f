"""Access to the brokers of a Kafka cluster in Kubernetes: the Service, and certificates from Strimzi's Secrets.

Port 9091 is the listener of the brokers themselves. Where the cluster's internal security is off it is plain, and no
Secret is read (docs/design/kafka.md 5).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kafka.brokers.connection_settings import ConnectionSettings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.kube.secret_tls import AUTHORITY_KEY, CERTIFICATE_KEY, PRIVATE_KEY, TlsContextCache, join_authorities
from plimsoll.objects.kafka_security import read_internal_security

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable

    from plimsoll.kafka.brokers.ports import ClusterConnection, KafkaAdmin
    from plimsoll.kube.secret_tls import SecretReader
    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.objects.kafka_security import InternalSecurity

PORT: Final = 9091
_OPERATOR: Final = "cluster-operator"


class KubernetesBrokers:
    """Connects to the brokers of any Kafka cluster by its Service, or at the addresses that `list_addresses` gives."""

    def __init__(
        self, secrets: SecretReader, *, list_addresses: Callable[[Kafka], tuple[str, ...]] | None = None
    ) -> None:
        self._secrets = secrets
        self._list_addresses = list_addresses or _list_service
        self._contexts = TlsContextCache()

    async def connect(self, kafka: Kafka) -> ClusterConnection:
        """A connection that is opened with its first request. Raises `KafkaUnavailable`."""
        return _KubernetesConnection(self, await self.read_settings(kafka))

    async def read_settings(self, kafka: Kafka) -> ConnectionSettings:
        """How to reach the brokers. Raises `KafkaUnavailable` while a Secret is missing or cannot be used."""
        try:
            bootstrap = self._list_addresses(kafka)
            if not bootstrap:
                raise KafkaUnavailable(f"no broker of {kafka.metadata.namespace}/{kafka.metadata.name} runs")
            security = read_internal_security(kafka)
            if not security.is_encrypted:
                return ConnectionSettings(bootstrap=bootstrap)
            context, certificate = await self._build_context(kafka, security)
        except InvalidInput as error:
            raise KafkaUnavailable(f"the brokers cannot be reached: {error}") from None
        return ConnectionSettings(
            bootstrap=bootstrap, security_protocol="SSL", ssl_context=context, certificate_pem=certificate
        )

    async def _build_context(self, kafka: Kafka, security: InternalSecurity) -> tuple[ssl.SSLContext, bytes]:
        """The context, and the certificate in it; empty: it has none."""
        namespace, name = kafka.metadata.namespace, kafka.metadata.name
        where = f"Secret {namespace}/{name}-cluster-ca-cert"
        authorities = await self._read(namespace, f"{name}-cluster-ca-cert")
        data, needed = {AUTHORITY_KEY: join_authorities(authorities)}, [AUTHORITY_KEY]
        if security.is_authenticated:
            pair = await self._read(namespace, f"{name}-cluster-operator-certs")
            data |= {CERTIFICATE_KEY: pair.get(f"{_OPERATOR}.crt", b""), PRIVATE_KEY: pair.get(f"{_OPERATOR}.key", b"")}
            where, needed = f"{where} with {name}-cluster-operator-certs", [*needed, CERTIFICATE_KEY, PRIVATE_KEY]
        return self._contexts.get_context(data, where, needed=needed), data.get(CERTIFICATE_KEY, b"")

    async def _read(self, namespace: str, name: str) -> dict[str, bytes]:
        data = await self._secrets.read(namespace, name)
        if data is None:
            raise InvalidInput(f"Secret {namespace}/{name} does not exist, or cannot be read")
        return data


class _KubernetesConnection:
    """The connection to one cluster."""

    def __init__(self, brokers: KubernetesBrokers, settings: ConnectionSettings) -> None:
        self._brokers = brokers
        self._settings = settings
        self._admin = KafkaPythonAdmin(settings)

    @property
    def admin(self) -> KafkaAdmin:
        return self._admin

    async def refresh(self, kafka: Kafka) -> None:
        settings = await self._brokers.read_settings(kafka)
        if settings != self._settings:
            self._settings = settings
            await self._admin.change_settings(settings)

    async def close(self) -> None:
        await self._admin.close()


def _list_service(kafka: Kafka) -> tuple[str, ...]:
    """The address of the bootstrap Service."""
    return (f"{kafka.metadata.name}-kafka-bootstrap.{kafka.metadata.namespace}.svc:{PORT}",)
