"""The Deployment of the Kafka operator in a cluster of this process.

The operator itself runs in this process. Its Deployment says so in the cluster, where the agent reads which versions
there are and whether one is available, as it does on any cluster.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll import __version__
from plimsoll.kafka.settings import NAME
from plimsoll.objects.api.workloads import Deployment
from plimsoll.runtime.supervisor import OnEnd, RestartPolicy, Service

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

NAMESPACE: Final = "kube-system"
DEPLOYMENT: Final = "plimsoll-kafka"
KAFKA_VERSIONS: Final = ("4.2.0", "4.3.0")
"""The versions of Kafka that simulated brokers can be of."""


def build_operator_deployment() -> dict[str, Any]:
    labels = {
        "app": DEPLOYMENT,
        "app.kubernetes.io/component": "kafka-operator",
        "app.kubernetes.io/version": __version__,
    }
    images = "\n".join(f"{version}=kafka:{version}" for version in KAFKA_VERSIONS)
    container = {
        "name": "kafka",
        "image": "plimsoll",
        "env": [{"name": "STRIMZI_KAFKA_IMAGES", "value": images}],
        "resources": {"requests": {"cpu": "50m", "memory": "150Mi"}},
    }
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": DEPLOYMENT, "namespace": NAMESPACE, "labels": labels},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": {"app": DEPLOYMENT}},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }


def build_deployment_service(client: Client) -> Service:
    """Applies the Deployment once."""

    async def apply() -> None:
        manifest = build_operator_deployment()
        await client.apply(Deployment, DEPLOYMENT, manifest, namespace=NAMESPACE, force=True, field_manager=NAME)

    return Service(name="Deployment of the Kafka operator", run=apply, policy=RestartPolicy(on_end=OnEnd.EXPECTED))
