"""How the brokers of a cluster in Kubernetes are reached: by certificates of Secrets, or plainly."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.kafka.brokers.access import KubernetesBrokers
from plimsoll.kafka.brokers.connection_settings import ConnectionSettings
from plimsoll.kafka.brokers.ports import KafkaUnavailable
from plimsoll.objects.api.kafka import Kafka
from plimsoll.testing import run_virtual
from tests.kube.http.authorities import CertificateAuthority

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

AUTHORITY = CertificateAuthority("cluster-ca")
PAIR = AUTHORITY.issue(subject="cluster-operator")
BOOTSTRAP = ("c-kafka-bootstrap.ns.svc:9091",)


class Secrets:
    """Secrets by name; keeps what was read."""

    def __init__(self) -> None:
        self.held = {
            "c-cluster-ca-cert": {"ca.crt": AUTHORITY.pem},
            "c-cluster-operator-certs": {
                "cluster-operator.crt": PAIR.certificate_pem,
                "cluster-operator.key": PAIR.key_pem,
            },
        }
        self.reads: list[str] = []

    async def read(self, namespace: str, name: str) -> dict[str, bytes] | None:
        assert namespace == "ns"
        self.reads.append(name)
        return self.held.get(name)


def build_kafka(**security: str) -> Kafka:
    written = json.dumps({key: {"type": value} for key, value in security.items()})
    annotations = {"strimzi.io/internal-cluster-security": written} if security else {}
    content: dict[str, Any] = {"metadata": {"name": "c", "namespace": "ns", "annotations": annotations}}
    return msgspec.convert(content, Kafka)


def read_settings(kafka: Kafka, secrets: Secrets) -> ConnectionSettings:
    return run_virtual(KubernetesBrokers(secrets).read_settings(kafka))


def test_clients_show_the_certificate_of_the_operator():
    secrets = Secrets()
    found = read_settings(build_kafka(), secrets)
    assert (found.bootstrap, found.security_protocol) == (BOOTSTRAP, "SSL")
    assert found.ssl_context is not None
    assert found.ssl_context.check_hostname
    assert len(found.ssl_context.get_ca_certs()) == 1
    assert secrets.reads == ["c-cluster-ca-cert", "c-cluster-operator-certs"]


def test_without_authentication_only_the_authority_is_read():
    secrets = Secrets()
    found = read_settings(build_kafka(encryption="tls", authentication="none"), secrets)
    assert found.security_protocol == "SSL"
    assert secrets.reads == ["c-cluster-ca-cert"]


def test_without_encryption_no_secret_is_read():
    secrets = Secrets()
    found = read_settings(build_kafka(encryption="none", authentication="none"), secrets)
    assert found == ConnectionSettings(bootstrap=BOOTSTRAP)
    assert secrets.reads == []


@pytest.mark.parametrize("name", ["c-cluster-ca-cert", "c-cluster-operator-certs"])
@pytest.mark.parametrize("data", [None, {}, {"ca.crt": b"x", "cluster-operator.crt": b"y"}])
def test_a_secret_that_is_missing_or_wrong_makes_the_brokers_unavailable(
    name: str, data: dict[str, bytes] | None, reviewed: ReviewedSentences
):
    secrets = Secrets()
    del secrets.held[name]
    if data is not None:
        secrets.held[name] = data
    with pytest.raises(KafkaUnavailable) as raised:
        read_settings(build_kafka(), secrets)
    reviewed(str(raised.value))


def test_a_renewed_certificate_is_used_without_another_connection_object():
    secrets = Secrets()

    async def refresh() -> None:
        connection = await KubernetesBrokers(secrets).connect(build_kafka())
        admin: Any = connection.admin
        former = admin._connection
        await connection.refresh(build_kafka())
        assert admin._connection is former
        renewed = AUTHORITY.issue(subject="cluster-operator")
        secrets.held["c-cluster-operator-certs"] = {
            "cluster-operator.crt": renewed.certificate_pem,
            "cluster-operator.key": renewed.key_pem,
        }
        await connection.refresh(build_kafka())
        assert id(connection.admin) == id(admin)
        assert admin._connection is not former
        await connection.close()

    run_virtual(refresh())
