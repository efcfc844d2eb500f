"""Kafka operators of the cluster: their Deployments, and their versions as they are reported."""

from __future__ import annotations

from plimsoll.core.values import Value


class OperatorDeployment(Value):
    """The Deployment of an operator. `version`: its label; `images`: what it has as STRIMZI_KAFKA_IMAGES."""

    name: str
    version: str
    is_available: bool
    images: str


class OperatorVersion(Value):
    """A Kafka operator, as it is reported."""

    version: str
    ready: bool
    kafka_versions: tuple[str, ...]

    @property
    def ibp_versions(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(".".join(version.split(".")[:2]) for version in self.kafka_versions))
