"""The operator refuses to start beside a Strimzi operator that watches the same namespaces."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.rivals import RivalFound, refuse_rivals
from plimsoll.local.controller_manager.workloads.deployments.controller import build_deployment_services
from tests.local.local_cluster import LocalClusterHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.golden.reviewed_sentences import ReviewedSentences

OWN_NAMESPACE = {"valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}}
FROM_CONFIG_MAP = {"valueFrom": {"configMapKeyRef": {"name": "watched", "key": "namespaces"}}}


@pytest.fixture
def world() -> Iterator[LocalClusterHarness]:
    with LocalClusterHarness(build_deployment_services) as world:
        world.namespace("strimzi")
        yield world


def install_strimzi(world: LocalClusterHarness, variable: dict[str, Any] | None, *, replicas: int = 1) -> None:
    environment = [] if variable is None else [{"name": "STRIMZI_NAMESPACE", **variable}]
    labels = {"strimzi.io/kind": "cluster-operator"}
    template = {
        "metadata": {"labels": labels},
        "spec": {"containers": [{"name": "operator", "image": "operator", "env": environment}]},
    }
    body = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "strimzi-cluster-operator", "labels": labels},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }
    world.made("/apis/apps/v1/namespaces/strimzi/deployments", body)
    world.run.settle()


def is_refused(world: LocalClusterHarness, namespace: str) -> bool:
    try:
        world.run.run_until(refuse_rivals(world.connect("kafka-operator"), namespace))
    except RivalFound:
        return True
    return False


@pytest.mark.parametrize(
    ("variable", "refused"),
    [
        (None, {"", "strimzi", "kafka"}),
        ({"value": ""}, {"", "strimzi", "kafka"}),
        ({"value": "*"}, {"", "strimzi", "kafka"}),
        ({"value": "a, *"}, {"", "strimzi", "kafka"}),
        (OWN_NAMESPACE, {"", "strimzi"}),
        ({"value": "kafka"}, {"", "kafka"}),
        ({"value": " a , kafka,b"}, {"", "kafka"}),
        ({"value": "a,b"}, {""}),
        (FROM_CONFIG_MAP, {"", "strimzi", "kafka"}),
    ],
)
def test_it_is_refused_where_strimzi_watches(
    world: LocalClusterHarness, variable: dict[str, Any] | None, refused: set[str]
):
    install_strimzi(world, variable)
    assert {namespace for namespace in ("", "strimzi", "kafka") if is_refused(world, namespace)} == refused


def test_nothing_is_refused_without_strimzi_or_with_one_that_is_scaled_to_zero(world: LocalClusterHarness):
    assert not is_refused(world, "")
    install_strimzi(world, None, replicas=0)
    assert not is_refused(world, "")


def test_the_refusal_names_the_deployment_and_what_to_do(world: LocalClusterHarness, reviewed: ReviewedSentences):
    install_strimzi(world, {"value": "kafka"})
    with pytest.raises(RivalFound) as refused:
        world.run.run_until(refuse_rivals(world.connect("kafka-operator"), ""))
    assert refused.value.exit_code == 1
    assert "Deployment strimzi/strimzi-cluster-operator watches namespace kafka" in str(refused.value)
    assert "--kafka-mode=companion" in str(refused.value)
    reviewed(str(refused.value))
