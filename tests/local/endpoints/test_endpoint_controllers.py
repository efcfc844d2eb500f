"""EndpointSlices and Endpoints follow the pods that a Service selects."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.local.apiserver.builders import MERGE
from tests.local.endpoints.builders import ENDPOINTS, PODS, SERVICES, SLICES, EndpointCluster, service

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(name="world")
def _world() -> Iterator[EndpointCluster]:
    with EndpointCluster() as world:
        yield world


def _conditions(world: EndpointCluster) -> dict[str, Any]:
    return {endpoint["targetRef"]["name"]: endpoint["conditions"] for endpoint in world.endpoints}


def test_a_service_without_pods_has_one_empty_slice(world: EndpointCluster):
    world.make(SERVICES, service())
    (only,) = world.slices
    assert not only.get("endpoints")
    assert not only.get("ports")
    assert world.subsets() is None


def test_the_first_pod_goes_into_the_slice_that_is_there(world: EndpointCluster):
    world.make(SERVICES, service())
    before = world.slices[0]["metadata"]["name"]
    world.pod("a", "10.0.0.1")
    (only,) = world.slices
    assert only["metadata"]["name"] == before
    assert only["ports"] == [{"name": "", "protocol": "TCP", "port": 80}]
    assert world.pods_in_slices == ["a"]


def test_pods_are_reported_with_node_zone_and_state(world: EndpointCluster):
    world.pod("a", "10.0.0.1", node="n1")
    world.pod("b", "10.0.0.2", node="n2", ready=False)
    world.make(SERVICES, service())
    ready, unready = world.endpoints
    assert (ready["addresses"], ready["nodeName"], ready["zone"]) == (["10.0.0.1"], "n1", "z1")
    assert ready["conditions"] == {"ready": True, "serving": True, "terminating": False}
    assert unready["conditions"] == {"ready": False, "serving": False, "terminating": False}
    (subset,) = world.subsets()
    assert [address["ip"] for address in subset["addresses"]] == ["10.0.0.1"]
    assert [item["ip"] for item in subset["notReadyAddresses"]] == ["10.0.0.2"]


def test_only_running_pods_with_the_labels_count(world: EndpointCluster):
    world.make(SERVICES, service())
    world.pod("other", "10.0.0.1", app="db")
    world.pod("ended", "10.0.0.2")
    world.says("ended", "10.0.0.2", phase="Succeeded")
    world.pod("good", "10.0.0.3")
    assert world.pods_in_slices == ["good"]


def test_a_terminating_pod_still_serves_in_slices_and_is_gone_from_endpoints(world: EndpointCluster):
    world.make(SERVICES, service())
    world.pod("a", "10.0.0.1")
    assert world.ask("DELETE", f"{PODS}/a", {"gracePeriodSeconds": 30}).status == 200
    world.pass_on()
    assert _conditions(world) == {"a": {"ready": False, "serving": True, "terminating": True}}
    assert world.subsets() is None


def test_a_service_may_publish_pods_that_are_not_ready(world: EndpointCluster):
    world.pod("a", "10.0.0.1", ready=False)
    world.make(SERVICES, service(publishNotReadyAddresses=True))
    assert _conditions(world) == {"a": {"ready": True, "serving": False, "terminating": False}}
    assert [subset["ip"] for subset in world.subsets()[0]["addresses"]] == ["10.0.0.1"]


def test_pods_that_give_a_port_different_numbers_are_in_different_slices(world: EndpointCluster):
    world.pod("a", "10.0.0.1", ports=[{"name": "http", "containerPort": 8080}])
    world.pod("b", "10.0.0.2", ports=[{"name": "http", "containerPort": 9090}])
    world.make(SERVICES, service(ports=[{"name": "web", "port": 80, "targetPort": "http"}]))
    by_port = {slice_["ports"][0]["port"]: slice_["endpoints"][0]["targetRef"]["name"] for slice_ in world.slices}
    assert by_port == {8080: "a", 9090: "b"}


def test_a_headless_service_says_so_on_its_slices(world: EndpointCluster):
    world.make(SERVICES, service(clusterIP="None"))
    assert world.slices[0]["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    labels = world.ask("GET", f"{ENDPOINTS}/svc").body["metadata"]["labels"]
    assert labels["service.kubernetes.io/headless"] == ""


def test_a_pod_with_a_name_below_the_service_has_a_hostname(world: EndpointCluster):
    world.pod("a", "10.0.0.1", hostname="db-0", subdomain="svc")
    world.make(SERVICES, service(clusterIP="None"))
    assert world.endpoints[0]["hostname"] == "db-0"


def test_labels_of_a_service_go_to_its_slices(world: EndpointCluster):
    world.make(SERVICES, service())
    world.patch(f"{SERVICES}/svc", {"metadata": {"labels": {"team": "a"}}})
    assert world.slices[0]["metadata"]["labels"]["team"] == "a"
    world.patch(f"{SERVICES}/svc", {"metadata": {"labels": {"team": None}}})
    assert "team" not in world.slices[0]["metadata"]["labels"]


def test_a_service_without_a_selector_is_left_alone(world: EndpointCluster):
    world.make(SERVICES, service(selector=None))
    assert world.slices == []
    assert world.ask("GET", f"{ENDPOINTS}/svc").status == 404


def test_endpoints_go_with_their_service(world: EndpointCluster):
    world.make(SERVICES, service())
    world.delete(f"{SERVICES}/svc")
    assert world.ask("GET", f"{ENDPOINTS}/svc").status == 404


def test_endpoints_made_by_a_user_stay(world: EndpointCluster):
    own = {"apiVersion": "v1", "kind": "Endpoints", "metadata": {"name": "own"}}
    world.make(ENDPOINTS, own)
    world.run.advance_by(1_000)
    assert world.ask("GET", f"{ENDPOINTS}/own").status == 200


def test_a_slice_that_is_deleted_comes_back(world: EndpointCluster):
    world.make(SERVICES, service())
    world.pod("a", "10.0.0.1")
    world.delete(f"{SLICES}/{world.slices[0]['metadata']['name']}")
    assert world.pods_in_slices == ["a"]


def test_a_slice_holds_a_hundred_pods(world: EndpointCluster):
    world.make(SERVICES, service())
    for number in range(101):
        world.pod(f"p{number:03}", f"10.0.1.{number}")
    assert sorted(len(slice_["endpoints"]) for slice_ in world.slices) == [1, 100]


def test_a_pod_that_changes_is_the_only_slice_written(world: EndpointCluster):
    for number in range(101):
        world.pod(f"p{number:03}", f"10.0.1.{number}")
    world.make(SERVICES, service())
    before = {slice_["metadata"]["name"]: slice_["metadata"]["resourceVersion"] for slice_ in world.slices}
    world.says("p000", "10.0.1.0", ready=False)
    after = {item["metadata"]["name"]: item["metadata"]["resourceVersion"] for item in world.slices}
    assert sum(before[name] != after[name] for name in before) == 1


def test_nothing_is_written_while_nothing_changes(world: EndpointCluster):
    world.make(SERVICES, service())
    world.pod("a", "10.0.0.1")
    before = world.ask("GET", ENDPOINTS).body["items"], world.slices
    world.run.advance_by(3_600)
    assert (world.ask("GET", ENDPOINTS).body["items"], world.slices) == before


def test_a_restart_makes_no_second_slice(world: EndpointCluster):
    world.make(SERVICES, service())
    world.pod("a", "10.0.0.1")
    world.kill()
    world.ask("PATCH", f"{PODS}/a", {"metadata": {"labels": {"app": "db"}}}, content=MERGE)
    world.start()
    world.pass_on()
    assert len(world.slices) == 1
    assert world.pods_in_slices == []
