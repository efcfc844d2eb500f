"""3.5.2, traffic gap: the Service of the base cluster reaches the TiDB servers of groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.services import EndpointSlice
from plimsoll.tidb.actuation.endpoint_slices import ServedGroups, SliceSync, sync_endpoint_slices
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from collections.abc import Iterator

PODS = "/api/v1/namespaces/prod/pods"
SERVICES = "/api/v1/namespaces/prod/services"


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        world.namespace("prod")
        world.made(SERVICES, service())
        yield world


def service(**spec: Any) -> dict[str, Any]:
    ports = [
        {"name": "mysql-client", "port": 4000, "targetPort": 4000},
        {"name": "status", "port": 10080, "targetPort": "status"},
    ]
    selector = {"app.kubernetes.io/instance": "db"}
    return {"metadata": {"name": "db-tidb"}, "spec": {"selector": selector, "ports": ports, **spec}}


def server(
    world: EmbeddedApi,
    name: str = "auto-x-tidb-0",
    *,
    address: str = "10.1.0.5",
    is_ready: bool = True,
    cluster: str = "auto-x",
) -> None:
    labels = {"app.kubernetes.io/instance": cluster, "app.kubernetes.io/component": "tidb"}
    container = {"name": "tidb", "image": "tidb", "ports": [{"name": "status", "containerPort": 10081}]}
    world.made(PODS, {"metadata": {"name": name, "labels": labels}, "spec": {"containers": [container]}})
    status = {
        "podIP": address,
        "podIPs": [{"ip": address}],
        "conditions": [{"type": "Ready", "status": "True" if is_ready else "False"}],
    }
    world.ask("PATCH", f"{PODS}/{name}/status", {"status": status}, content="application/merge-patch+json")


def kept(world: EmbeddedApi, **replicas: int) -> SliceSync:
    named = {name.replace("_", "-"): number for name, number in replicas.items()}
    return world.do(sync_endpoint_slices(world.client, ServedGroups(namespace="prod", base="db", replicas=named)))


def ours(world: EmbeddedApi) -> list[EndpointSlice]:
    labels = "kubernetes.io/service-name=db-tidb,endpointslice.kubernetes.io/managed-by=tidb-autoscaler"
    return list(world.do(world.client.list(EndpointSlice, Selection(namespace="prod", labels=labels))).items)


def addresses(world: EmbeddedApi) -> list[str]:
    return [
        address
        for endpoint_slice in ours(world)
        for endpoint in endpoint_slice.endpoints
        for address in endpoint.addresses
    ]


def test_ready_servers_of_a_group_are_served(world: EmbeddedApi) -> None:
    server(world)
    server(world, "auto-x-tidb-1", address="10.1.0.6", is_ready=False)
    assert kept(world, auto_x=2) == SliceSync(servers=1, wrote=True)
    assert addresses(world) == ["10.1.0.5"]


def test_ports_are_those_of_the_service_as_pods_have_them(world: EmbeddedApi) -> None:
    server(world)
    kept(world, auto_x=1)
    (one,) = ours(world)
    assert one.address_type == "IPv4"
    assert [(port.name, port.port) for port in one.ports] == [("mysql-client", 4000), ("status", 10081)]


def test_the_service_owns_the_slice(world: EmbeddedApi) -> None:
    server(world)
    kept(world, auto_x=1)
    (owner,) = ours(world)[0].metadata.owner_references
    assert (owner.kind, owner.name) == ("Service", "db-tidb")


def test_the_second_time_nothing_is_written(world: EmbeddedApi) -> None:
    server(world)
    kept(world, auto_x=1)
    assert kept(world, auto_x=1) == SliceSync(servers=1, wrote=False)


def test_a_server_that_is_to_go_is_taken_out_while_it_still_runs(world: EmbeddedApi) -> None:
    server(world)
    server(world, "auto-x-tidb-1", address="10.1.0.6")
    kept(world, auto_x=2)
    assert kept(world, auto_x=1) == SliceSync(servers=1, wrote=True)
    assert addresses(world) == ["10.1.0.5"]


def test_without_servers_there_is_no_slice(world: EmbeddedApi) -> None:
    server(world)
    kept(world, auto_x=1)
    assert kept(world, auto_x=0) == SliceSync(servers=0, wrote=True)
    assert ours(world) == []
    assert kept(world) == SliceSync(servers=0, wrote=False)


def test_servers_of_other_clusters_are_not_ours_to_serve(world: EmbeddedApi) -> None:
    server(world, "db-tidb-0", cluster="db", address="10.1.0.1")
    server(world, "stray-0", address="10.1.0.2")
    assert kept(world, auto_x=3) == SliceSync(servers=0, wrote=False)


def test_a_cluster_without_a_service_is_left_alone(world: EmbeddedApi) -> None:
    server(world)
    world.ask("DELETE", f"{SERVICES}/db-tidb")
    assert kept(world, auto_x=1) == SliceSync(servers=0, wrote=False)


def test_slices_of_kubernetes_itself_are_not_touched(world: EmbeddedApi) -> None:
    server(world)
    labels = {"kubernetes.io/service-name": "db-tidb", "endpointslice.kubernetes.io/managed-by": "somebody"}
    theirs = {"metadata": {"name": "db-tidb-abc", "labels": labels}, "addressType": "IPv4", "endpoints": []}
    url = "/apis/discovery.k8s.io/v1/namespaces/prod/endpointslices"
    before = world.made(url, theirs)
    kept(world, auto_x=1)
    kept(world, auto_x=0)
    assert world.ask("GET", f"{url}/db-tidb-abc") == before
