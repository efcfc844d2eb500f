"""What a cluster begins with, and what a later start leaves alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Self

import pytest

from plimsoll.kube.client import Client
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.initial_cluster import InitialCluster, prepare_cluster
from plimsoll.objects.api.simulated_cloud import CLOUD_RESOURCES
from plimsoll.objects.registry import KINDS
from plimsoll.runtime.entropy import SeededEntropy
from tests.effort import choose_calls
from tests.faults import CrashAfter, Crashed
from tests.local.apiserver.builders import ADMIN, MERGE, ApiServerHarness

if TYPE_CHECKING:
    from collections.abc import Iterator

CLOUD = "/apis/cloud.plimsoll.io/v1alpha1"
GROUP = f"{CLOUD}/nodegroups/workers"
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


class EmptyApiServer(ApiServerHarness):
    """A server that holds nothing yet."""

    def __enter__(self) -> Self:
        super().__enter__()
        self.run.run_until(self.application.start())
        return self

    def start(self, nodes: int | None = None, *, through: Any = lambda port: port) -> None:
        transport = through(EmbeddedTransport(self.application, token=ADMIN))
        client = Client(
            transport, clock=self.run.clock, entropy=SeededEntropy("first"), kinds=KINDS.extend(CLOUD_RESOURCES)
        )
        self.run.run_until(prepare_cluster(client, InitialCluster(nodes=nodes)))

    def target(self) -> int:
        found: int = self.ask("GET", GROUP).body["spec"]["target"]
        return found

    def names(self, url: str) -> list[str]:
        return [item["metadata"]["name"] for item in self.ask("GET", url).body["items"]]


@pytest.fixture
def world() -> Iterator[EmptyApiServer]:
    with EmptyApiServer() as fresh:
        yield fresh


def test_a_new_cluster_has_a_cloud_three_machines_to_come_and_a_storage_class(world: EmptyApiServer):
    world.start()
    assert world.names(f"{CLOUD}/clouds") == ["cloud"]
    assert world.target() == 3
    (storage,) = world.ask("GET", "/apis/storage.k8s.io/v1/storageclasses").body["items"]
    assert storage["metadata"]["annotations"] == {"storageclass.kubernetes.io/is-default-class": "true"}
    assert "nodegroups.cloud.plimsoll.io" in world.names(DEFINITIONS)


def test_a_second_start_writes_nothing(world: EmptyApiServer):
    world.start()
    before = world.ask("GET", DEFINITIONS).body
    world.start()
    assert world.ask("GET", DEFINITIONS).body == before


def test_what_was_changed_or_deleted_stays_so(world: EmptyApiServer):
    world.start()
    world.ask("PATCH", GROUP, {"spec": {"target": 7}}, content=MERGE)
    world.ask("DELETE", "/apis/storage.k8s.io/v1/storageclasses/standard")
    world.start()
    assert world.target() == 7
    assert world.names("/apis/storage.k8s.io/v1/storageclasses") == []
    world.ask("DELETE", GROUP)
    world.start()
    assert world.names(f"{CLOUD}/nodegroups") == []


def test_a_number_of_nodes_is_heeded_at_any_start(world: EmptyApiServer):
    world.start(nodes=5)
    assert world.target() == 5
    world.start(nodes=120)
    assert world.target() == 120
    assert world.ask("GET", GROUP).body["spec"]["max"] == 120
    world.ask("DELETE", GROUP)
    world.start(nodes=0)
    assert world.target() == 0


def test_a_definition_that_was_changed_is_brought_up_to_date(world: EmptyApiServer):
    world.start()
    url = f"{DEFINITIONS}/nodegroups.cloud.plimsoll.io"
    names = {"spec": {"names": {"shortNames": ["nothing"]}}}
    assert world.ask("PATCH", url, names, content=MERGE).status == 200
    world.start()
    assert world.ask("GET", url).body["spec"]["names"]["shortNames"] == ["ng"]


def test_a_start_that_ends_at_any_write_is_made_good_by_the_next():
    for calls in choose_calls(100):
        with EmptyApiServer() as world:
            try:
                world.start(through=lambda port, calls=calls: CrashAfter(calls).wrap(port))
            except Crashed:
                world.start()
                assert world.target() == 3
                assert world.names(f"{CLOUD}/clouds") == ["cloud"]
                assert world.names("/apis/storage.k8s.io/v1/storageclasses") == ["standard"]
            else:
                assert calls > 5
                return
    pytest.fail("it never came to its end")
