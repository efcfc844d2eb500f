"""Certificates and users of a Kafka cluster, in Secrets with Strimzi's names.

What Strimzi's cluster operator makes is made here: the authority of a cluster (`CLUSTER-cluster-ca-cert`,
`CLUSTER-cluster-ca`) and the certificate of the operator (`CLUSTER-cluster-operator-certs`). Nodes get a new
certificate at every start. Users are Secrets with the label `strimzi.io/kind: KafkaUser` and the key `password`.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from typing import TYPE_CHECKING, Final

from cryptography import x509

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.errors import AlreadyExists, NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.local.certificate_authority import (
    Pair,
    decode_key,
    encode_certificate,
    encode_key,
    issue_certificate,
    make_authority,
)
from plimsoll.local.kafka.processes.configuration import HOST
from plimsoll.objects.api.core import Secret

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.kafka import Kafka

SCRAM: Final = "SCRAM-SHA-512"
USER_LABELS: Final = {"strimzi.io/kind": "KafkaUser"}
_CLUSTER_LABEL: Final = "strimzi.io/cluster"
_OPERATOR: Final = "cluster-operator"


class ClusterSecurity:
    """The certificates and users of all clusters."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client = client
        self._clock = clock
        self._lock = asyncio.Lock()

    async def issue_node_certificate(self, kafka: Kafka, pod: str) -> tuple[bytes, bytes]:
        """Key and certificate of a node, and the certificate of the cluster's authority, as PEM.

        Raises `InvalidInput` if the Secrets of the authority cannot be used.
        """
        async with self._lock:
            authority = await self._load_authority(kafka)
        issued = issue_certificate(authority, pod, names=(HOST, "localhost"), is_client=True, now=self._clock.now())
        key_store = encode_key(issued.key) + encode_certificate(issued.certificate)
        return key_store, encode_certificate(authority.certificate)

    async def list_passwords(self, kafka: Kafka) -> dict[str, str]:
        """By user of the cluster."""
        labels = {**USER_LABELS, _CLUSTER_LABEL: kafka.metadata.name}
        selector = ",".join(f"{key}={value}" for key, value in labels.items())
        listed = await self._client.list(Secret, Selection(namespace=kafka.metadata.namespace, labels=selector))
        return {
            secret.metadata.name: secret.data["password"].decode(errors="replace")
            for secret in listed.items
            if secret.data.get("password")
        }

    async def _load_authority(self, kafka: Kafka) -> Pair:
        namespace, name = kafka.metadata.namespace, kafka.metadata.name
        certificates = await self._read(namespace, f"{name}-cluster-ca-cert")
        keys = await self._read(namespace, f"{name}-cluster-ca")
        if certificates is None:
            return await self._make_authority(kafka)
        key = decode_key((keys or {}).get("ca.key", b""))
        try:
            certificate = x509.load_pem_x509_certificate((certificates or {}).get("ca.crt", b""))
        except ValueError:
            certificate = None
        if key is None or certificate is None or certificate.public_key() != key.public_key():
            raise InvalidInput(f"Secrets {name}-cluster-ca-cert and {name}-cluster-ca hold no pair", path=namespace)
        return Pair(certificate, key)

    async def _make_authority(self, kafka: Kafka) -> Pair:
        name, now = kafka.metadata.name, self._clock.now()
        authority = make_authority(f"{name}-cluster-ca", now)
        operator = issue_certificate(authority, _OPERATOR, is_client=True, now=now)
        operator_data = {
            f"{_OPERATOR}.crt": encode_certificate(operator.certificate),
            f"{_OPERATOR}.key": encode_key(operator.key),
        }
        # The certificate last: without it all are made again.
        await self._create(kafka, f"{name}-cluster-operator-certs", operator_data)
        await self._create(kafka, f"{name}-cluster-ca", {"ca.key": encode_key(authority.key)})
        await self._create(kafka, f"{name}-cluster-ca-cert", {"ca.crt": encode_certificate(authority.certificate)})
        return authority

    async def _read(self, namespace: str, name: str) -> dict[str, bytes] | None:
        try:
            return (await self._client.get(Secret, name, namespace=namespace)).data
        except NotFound:
            return None

    async def _create(self, kafka: Kafka, name: str, data: Mapping[str, bytes]) -> None:
        metadata = {"name": name, "labels": {_CLUSTER_LABEL: kafka.metadata.name}}
        body = {"metadata": metadata, "data": {key: b64encode(value).decode() for key, value in data.items()}}
        try:
            await self._client.create(Secret, body, namespace=kafka.metadata.namespace)
        except AlreadyExists:
            await self._client.merge_patch(Secret, name, body, namespace=kafka.metadata.namespace)
