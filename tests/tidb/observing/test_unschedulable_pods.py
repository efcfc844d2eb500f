"""Pods that find no node: reported after the grace, and no more of them are made meanwhile."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.tidb.autoscaled_clusters import AUTO, AutoscaledCluster, EmbeddedServer, group

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[AutoscaledCluster]:
    with AutoscaledCluster(EmbeddedServer, drains_actively=True) as made:
        made.autoscaler().cluster()
        made.planner.says(group(1))
        made.once()
        yield made


def wait_for_a_node(world: AutoscaledCluster, *, since: str) -> None:
    assert isinstance(world.server, EmbeddedServer)
    name = f"{AUTO}-tikv-0"
    labels = {"app.kubernetes.io/instance": AUTO}
    pods = "/api/v1/namespaces/prod/pods"
    spec = {"containers": [{"name": "tikv", "image": "tikv"}]}
    world.server.world.made(pods, {"metadata": {"name": name, "labels": labels}, "spec": spec})
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable", "lastTransitionTime": since}
    reply = world.server.world.ask(
        "PATCH",
        f"{pods}/{name}/status",
        {"status": {"phase": "Pending", "conditions": [condition]}},
        content="application/merge-patch+json",
    )
    assert reply.status == 200, reply


def test_within_the_grace_nothing_is_reported(world: AutoscaledCluster) -> None:
    wait_for_a_node(world, since="2026-01-01T00:00:00Z")
    world.once(600)
    assert world.condition("Unschedulable") == ("False", "PodsHaveNodes")


def test_afterwards_it_is_reported_and_the_group_does_not_grow(world: AutoscaledCluster) -> None:
    wait_for_a_node(world, since="2026-01-01T00:00:00Z")
    world.planner.says(group(2))
    world.once(601)
    assert world.condition("Unschedulable") == ("True", "PodsWithoutNode")
    assert AUTO in world.message("Unschedulable")
    assert world.tc()["spec"]["tikv"]["replicas"] == 1
    world.once(631)
    assert (world.sent.wrote, world.sent.events) == ([], [])
