"""The recorded slice and endpoints of a Service, replayed with the endpoint controllers.

The order of endpoints within a slice is that of a Go map, so ours are put into the recorded order.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from plimsoll.local.endpoints.services import build_endpoint_services
from tests.conformance.comparison import body_differences
from tests.conformance.recordings import by_id
from tests.conformance.servers import RECORDED_DAY
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

_CORE = "/api/v1/namespaces/ctl"
_ADDRESS = "10.0.0.5"


@cache
def _answers() -> dict[str, Any]:
    world = LocalClusterHarness(build_endpoint_services)
    world.run.advance_to(RECORDED_DAY)
    with world:
        world.namespace("ctl")
        for number in (1, 2):
            labels = {"topology.kubernetes.io/zone": f"z{number}"}
            world.made("/api/v1/nodes", {"metadata": {"name": f"n{number}", "labels": labels}})
        for recorded in by_id("controllers-035").response["items"][0]["endpoints"]:
            _run_pod(world, recorded["targetRef"]["name"], recorded["nodeName"])
        spec = {"selector": {"app": "d"}, "ports": [{"port": 80}]}
        world.made(f"{_CORE}/services", {"metadata": {"name": "svc"}, "spec": spec})
        world.run.advance_by(1)
        return {number: world.ask("GET", by_id(number).path).body for number in ("controllers-035", "controllers-036")}


def _run_pod(world: LocalClusterHarness, name: str, node: str) -> None:
    spec = {"containers": [{"name": "c", "image": "nginx:1.27"}], "nodeName": node}
    world.made(f"{_CORE}/pods", {"metadata": {"name": name, "labels": {"app": "d"}}, "spec": spec})
    ready = {"type": "Ready", "status": "True", "lastTransitionTime": "2026-11-15T04:03:18Z"}
    status = {"phase": "Running", "podIP": _ADDRESS, "podIPs": [{"ip": _ADDRESS}], "conditions": [ready]}
    world.ask("PATCH", f"{_CORE}/pods/{name}/status", {"status": status}, content=MERGE)


def test_the_slice_is_the_recorded_one():
    ours = _answers()["controllers-035"]
    ours["items"][0]["endpoints"].sort(key=lambda our: our["nodeName"], reverse=True)
    assert _differences("controllers-035", ours) == []


def test_the_endpoints_are_the_recorded_ones():
    ours = _answers()["controllers-036"]
    ours["subsets"][0]["addresses"].sort(key=lambda our: our["nodeName"])
    assert _differences("controllers-036", ours) == []


def _differences(recorded_id: str, ours: Any) -> list[str]:
    return list(body_differences(by_id(recorded_id).response, ours, is_cut=False, id_=recorded_id))
