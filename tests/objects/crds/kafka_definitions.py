"""An API server with definitions of Kafka: ours, or Strimzi's as they are, without their descriptions."""

from __future__ import annotations

import copy
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

from plimsoll.objects.api.kafka import KAFKA_GROUP, POD_SET_GROUP
from plimsoll.objects.codec.manifests import read_manifests
from plimsoll.objects.validation import list_shipped_definitions
from tests.local.apiserver.builders import ApiServerHarness

if TYPE_CHECKING:
    from collections.abc import Iterable

    from tests.local.apiserver.builders import Reply

Json = dict[str, Any]

NAMESPACE = "kafka"
STRIMZI = sorted((Path(__file__).parents[2] / "fixtures" / "strimzi").glob("*.yaml"))
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
PLURALS = {
    "Kafka": "kafkas",
    "KafkaNodePool": "kafkanodepools",
    "KafkaRebalance": "kafkarebalances",
    "KafkaRebalanceSettings": "kafkarebalancesettings",
    "StrimziPodSet": "strimzipodsets",
}


def list_our_definitions() -> list[Json]:
    groups = (KAFKA_GROUP, POD_SET_GROUP)
    return [manifest.body for manifest in list_shipped_definitions() if manifest.body["spec"]["group"] in groups]


def list_strimzi_definitions() -> list[Json]:
    return copy.deepcopy(_read_strimzi_definitions())


@cache
def _read_strimzi_definitions() -> list[Json]:
    return [manifest.body for path in STRIMZI for manifest in read_manifests(path.read_bytes(), source=path.name)]


class DefinedKafka(ApiServerHarness):
    """The server with these definitions and the namespace `kafka`."""

    def __init__(self, definitions: Iterable[Json]) -> None:
        super().__init__()
        self._definitions = tuple(definitions)

    def __enter__(self) -> Self:
        super().__enter__()
        self.run.run_until(self.application.start())
        for body in self._definitions:
            self.made(DEFINITIONS, body)
        self.run.settle()
        self.namespace(NAMESPACE)
        return self

    def create(self, body: Json) -> Reply:
        return self.ask("POST", url_of(body), body)

    def read(self, body: Json, *, version: str = "") -> Json:
        """The object as it is stored, in a version; without one in its own."""
        group, own = body["apiVersion"].split("/")
        named = {**body, "apiVersion": f"{group}/{version or own}"}
        reply = self.ask("GET", f"{url_of(named)}/{body['metadata']['name']}")
        assert reply.status == 200, reply
        found: Json = reply.body
        return found


def url_of(body: Json) -> str:
    return f"/apis/{body['apiVersion']}/namespaces/{NAMESPACE}/{PLURALS[body['kind']]}"


def kafka(*, version: str = "v1", auto_rebalance: Any = None, **more: Any) -> Json:
    cruise_control = {} if auto_rebalance is None else {"autoRebalance": auto_rebalance}
    listeners = [{"name": "plain", "port": 9092, "type": "internal", "tls": False}]
    return {
        "apiVersion": f"{KAFKA_GROUP}/{version}",
        "kind": "Kafka",
        "metadata": {"name": "c"},
        "spec": {"kafka": {"version": "4.3.1", "listeners": listeners, **more}, "cruiseControl": cruise_control},
    }


def rebalance(kind: str = "KafkaRebalance", *, version: str = "v1", **spec: Any) -> Json:
    labels = {"strimzi.io/cluster": "c"}
    return {
        "apiVersion": f"{KAFKA_GROUP}/{version}",
        "kind": kind,
        "metadata": {"name": "r", "labels": labels},
        "spec": spec,
    }


def node_pool(*, version: str = "v1", **spec: Any) -> Json:
    whole = {"replicas": 3, "roles": ["broker"], "storage": {"type": "ephemeral"}, **spec}
    return {
        "apiVersion": f"{KAFKA_GROUP}/{version}",
        "kind": "KafkaNodePool",
        "metadata": {"name": "p", "labels": {"strimzi.io/cluster": "c"}},
        "spec": whole,
    }


def pod_set(*, version: str = "v1", **spec: Any) -> Json:
    return {
        "apiVersion": f"{POD_SET_GROUP}/{version}",
        "kind": "StrimziPodSet",
        "metadata": {"name": "c-p"},
        "spec": {"selector": {"matchLabels": {"strimzi.io/pool-name": "p"}}, "pods": [], **spec},
    }
