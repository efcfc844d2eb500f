"""Where services lead: slices and Endpoints follow the pods, as recorded from the real controllers."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.upkeep.services import endpoint_services
from tests.conformance.comparing import body_differences
from tests.conformance.recordings import by_id
from tests.local.apiserver.application.worlds import MERGE
from tests.local.local_worlds import LocalWorld

SLICES = "/apis/discovery.k8s.io/v1/namespaces/ctl/endpointslices"


class ServiceWorld(LocalWorld):
    def __init__(self) -> None:
        super().__init__(endpoint_services)

    def service(self, target: int | str = 80) -> None:
        self.base = self.namespace("ctl")
        for name in ("n1", "n2"):
            zone = {"topology.kubernetes.io/zone": f"z{name[1]}"}
            self.made("/api/v1/nodes", {"metadata": {"name": name, "labels": zone}})
        spec = {"selector": {"app": "d"}, "ports": [{"port": 80, "targetPort": target}]}
        self.made(f"{self.base}/services", {"metadata": {"name": "svc"}, "spec": spec})
        self.run.settle()

    def pod(self, name: str, node: str, *, ready: bool = True, ip: str = "10.0.0.5") -> None:
        ports = [{"name": "http", "containerPort": 8080}]
        spec = {"nodeName": node, "containers": [{"name": "c", "image": "x", "ports": ports}]}
        self.made(f"{self.base}/pods", {"metadata": {"name": name, "labels": {"app": "d"}}, "spec": spec})
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        status = {"phase": "Running", "conditions": conditions, "podIP": ip, "podIPs": [{"ip": ip}]}
        reply = self.ask("PATCH", f"{self.base}/pods/{name}/status", {"status": status}, content=MERGE)
        assert reply.status == 200, reply
        self.run.settle()

    def slices(self) -> list[Any]:
        return list(self.ask("GET", SLICES).body["items"])

    def ready(self) -> dict[str, bool]:
        return {
            one["targetRef"]["name"]: one["conditions"]["ready"]
            for found in self.slices()
            for one in found.get("endpoints") or []
        }

    def endpoints(self) -> Any:
        return self.ask("GET", f"{self.base}/endpoints/svc").body


def differences(recorded: Any, ours: Any) -> list[str]:
    return list(body_differences(recorded, ours, is_cut=False, id_="endpoints"))


def test_a_service_leads_where_the_real_one_led():
    with ServiceWorld() as world:
        world.service()
        world.pod("d-5bb5df796c-cz5vd", "n1")
        world.pod("d-5bb5df796c-twdpd", "n2")
        (recorded,) = by_id("controllers-035").response["items"]
        (ours,) = world.slices()
        by_name = sorted(recorded["endpoints"], key=lambda one: str(one["targetRef"]["name"]))
        assert differences(by_name, ours["endpoints"]) == []
        assert differences(recorded["ports"], ours["ports"]) == []
        for part in ("labels", "ownerReferences", "generateName"):
            assert differences(recorded["metadata"][part], ours["metadata"][part]) == []
        recorded = by_id("controllers-036").response
        assert differences(recorded["subsets"], world.endpoints()["subsets"]) == []
        assert differences(recorded["metadata"]["labels"], world.endpoints()["metadata"]["labels"]) == []


def test_a_pod_that_is_not_ready_is_there_and_gets_no_traffic():
    with ServiceWorld() as world:
        world.service()
        world.pod("up", "n1")
        world.pod("down", "n2", ready=False)
        assert world.ready() == {"up": True, "down": False}
        (subset,) = world.endpoints()["subsets"]
        assert [one["targetRef"]["name"] for one in subset["notReadyAddresses"]] == ["down"]


def test_a_pod_that_ends_leaves():
    with ServiceWorld() as world:
        world.service()
        world.pod("a", "n1")
        world.ask("DELETE", f"{world.base}/pods/a")
        world.run.settle()
        (endpoint,) = world.slices()[0]["endpoints"]
        assert endpoint["conditions"] == {"ready": False, "serving": True, "terminating": True}
        world.ask("DELETE", f"{world.base}/pods/a?gracePeriodSeconds=0")
        world.run.settle()
        assert world.ready() == {}
        assert "subsets" not in world.endpoints()


@pytest.mark.parametrize(("target", "number"), [(9000, 9000), ("http", 8080)])
def test_ports_are_those_of_the_pods(target: int | str, number: int):
    with ServiceWorld() as world:
        world.service(target)
        world.pod("a", "n1")
        assert [one["port"] for one in world.slices()[0]["ports"]] == [number]


def test_a_deleted_service_takes_its_endpoints_along():
    with ServiceWorld() as world:
        world.service()
        world.ask("DELETE", f"{world.base}/services/svc")
        world.run.settle()
        assert world.ask("GET", f"{world.base}/endpoints/svc").status == 404


def test_a_restart_makes_no_second_slice():
    with ServiceWorld() as world:
        world.service()
        world.kill()
        world.pod("a", "n1")
        world.start()
        assert len(world.slices()) == 1
        assert world.ready() == {"a": True}
