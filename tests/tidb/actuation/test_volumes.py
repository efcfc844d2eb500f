"""Disks: marked for whoever reclaims them once their store is buried, and not before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.tidb.actuation.draining_clusters import DrainingCluster
from tests.tidb.autoscaled_clusters import AUTO, EmbeddedServer, group

if TYPE_CHECKING:
    from collections.abc import Iterator

CLAIMS = "/api/v1/namespaces/prod/persistentvolumeclaims"
DEFERRED = "tidb.pingcap.com/pvc-defer-deleting"


@pytest.fixture
def world() -> Iterator[DrainingCluster]:
    """Two stores, of which one is to go, and their disks."""
    with DrainingCluster(EmbeddedServer) as made:
        made.autoscaler().cluster().planner.says(group(2))
        made.once()
        for ordinal in range(2):
            spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "10Gi"}}}
            metadata = {"name": f"tikv-{AUTO}-tikv-{ordinal}"}
            body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}
            assert ask(made, "POST", CLAIMS, body).status == 201
        made.run.advance_by(700)
        made.planner.says(group(1))
        yield made


def ask(world: DrainingCluster, method: str, path: str, body: Any = None) -> Any:
    assert isinstance(world.server, EmbeddedServer)
    return world.server.world.ask(method, path, body)


def marked(world: DrainingCluster) -> list[bool]:
    found = [ask(world, "GET", f"{CLAIMS}/tikv-{AUTO}-tikv-{ordinal}").body["metadata"] for ordinal in range(2)]
    return [DEFERRED in metadata.get("annotations", {}) for metadata in found]


def test_the_disk_of_the_store_that_left_is_marked(world: DrainingCluster) -> None:
    world.pass_by(20)
    assert marked(world) == [False, False]
    world.pass_by(60)
    assert world.tc()["spec"]["tikv"]["replicas"] == 1
    assert marked(world) == [False, True]


def test_where_an_operator_takes_stores_out_their_disks_are_in_use_until_then(world: DrainingCluster) -> None:
    """A disk that is marked goes as soon as `replicas` rises again, with the store that is still on it."""
    world.settings = type(world.settings)(planner=world.settings.planner, drains_actively=False)
    world.pass_by(10)
    assert world.tc()["spec"]["tikv"]["replicas"] == 1
    assert marked(world) == [False, False]


def test_a_claim_that_is_not_there_delays_nothing(world: DrainingCluster) -> None:
    assert ask(world, "DELETE", f"{CLAIMS}/tikv-{AUTO}-tikv-1").status == 200
    world.pass_by(80)
    assert world.tc()["spec"]["tikv"]["replicas"] == 1
