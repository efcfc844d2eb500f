from __future__ import annotations

from typing import Any

import pytest

from tests.local.apiserver.builders import MERGE, ApiServerHarness, pod


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        made.namespace()
        yield made


EVENTS = "/api/v1/namespaces/here/events"
NEW_EVENTS = "/apis/events.k8s.io/v1/namespaces/here/events"
SERVICES = "/api/v1/namespaces/here/services"


def service(name: str = "s", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": [{"port": 80}], **spec}}


def test_an_event_has_two_faces(world: ApiServerHarness):
    about = {"kind": "Pod", "namespace": "here", "name": "p"}
    world.made(
        EVENTS, {"metadata": {"name": "e"}, "involvedObject": about, "message": "m", "source": {"component": "c"}}
    )
    shown = world.ask("GET", f"{NEW_EVENTS}/e").body
    assert (shown["regarding"], shown["note"], shown["deprecatedSource"]) == (about, "m", {"component": "c"})
    assert (shown["apiVersion"], shown["eventTime"]) == ("events.k8s.io/v1", None)
    listed = world.ask("GET", f"{NEW_EVENTS}?fieldSelector=regarding.name%3Dp").body
    assert [item["note"] for item in listed["items"]] == ["m"]
    watching = world.watch(f"{NEW_EVENTS}?watch=1")
    assert watching.events[0]["object"]["note"] == "m"


@pytest.mark.parametrize(
    ("url", "body", "fields"),
    [
        (NEW_EVENTS, {"regarding": {"namespace": "here"}, "type": "Odd"}, ["eventTime", "type"]),
        (EVENTS, {"involvedObject": {"namespace": "other"}}, ["involvedObject.namespace"]),
        (EVENTS, {"involvedObject": {"kind": "Node", "name": "n"}}, ["involvedObject.namespace"]),
    ],
)
def test_an_event_has_to_fit_its_namespace_and_version(
    world: ApiServerHarness, url: str, body: dict[str, Any], fields: list[str]
):
    reply = world.ask("POST", url, {"metadata": {"name": "e"}, **body})
    assert reply.status == 422
    assert [cause["field"] for cause in reply.body["details"]["causes"]] == fields
    assert "group" not in reply.body["details"]


def test_a_service_gets_an_address_of_its_own_and_keeps_it(world: ApiServerHarness):
    first, second = world.made(SERVICES, service("a"))["spec"], world.made(SERVICES, service("b"))["spec"]
    assert first["clusterIP"].startswith("10.")
    assert first["clusterIPs"] == [first["clusterIP"]]
    assert first["clusterIP"] != second["clusterIP"]
    changed = world.ask("PATCH", f"{SERVICES}/a", {"spec": {"selector": {"x": "y"}}}, content=MERGE)
    assert changed.body["spec"]["clusterIP"] == first["clusterIP"]


def test_the_same_service_gets_the_same_address_in_every_world(world: ApiServerHarness):
    mine = world.made(SERVICES, service("a"))["spec"]["clusterIP"]
    with ApiServerHarness() as other:
        other.namespace()
        assert other.made(SERVICES, service("a"))["spec"]["clusterIP"] == mine


def test_an_address_is_given_once(world: ApiServerHarness):
    taken = world.made(SERVICES, service("a"))["spec"]["clusterIP"]
    reply = world.ask("POST", SERVICES, service("b", clusterIP=taken))
    assert reply.status == 422
    assert "provided IP is already allocated" in reply.message


def test_a_headless_service_has_none(world: ApiServerHarness):
    spec = world.made(SERVICES, service(clusterIP="None"))["spec"]
    assert (spec["clusterIP"], spec["clusterIPs"], spec["ipFamilies"]) == ("None", ["None"], ["IPv4"])


def test_node_ports_are_given_and_kept(world: ApiServerHarness):
    made = world.made(SERVICES, service("a", type="NodePort"))["spec"]["ports"][0]["nodePort"]
    other = world.made(SERVICES, service("b", type="NodePort"))["spec"]["ports"][0]["nodePort"]
    assert 30000 <= made < 32768
    assert made != other
    changed = world.ask("PATCH", f"{SERVICES}/a", {"metadata": {"labels": {"l": "1"}}}, content=MERGE)
    assert changed.body["spec"]["ports"][0]["nodePort"] == made


def test_a_gated_pod_says_so(world: ApiServerHarness):
    made = world.made("/api/v1/namespaces/here/pods", pod(schedulingGates=[{"name": "ex.com/g"}]))
    (condition,) = made["status"]["conditions"]
    assert (condition["reason"], condition["lastProbeTime"]) == ("SchedulingGated", None)


def test_what_is_empty_is_not_written(world: ApiServerHarness):
    made = world.made("/api/v1/namespaces/here/pods", pod(nodeSelector={}, tolerations=[], hostNetwork=False))
    assert "nodeSelector" not in made["spec"]
    assert "hostNetwork" not in made["spec"]


def test_a_zero_behind_a_pointer_is(world: ApiServerHarness):
    made = world.made("/api/v1/namespaces/here/configmaps", {"metadata": {"name": "c"}, "immutable": False, "data": {}})
    assert made["immutable"] is False
    assert "data" not in made


def test_a_new_template_counts_for_a_daemon_set(world: ApiServerHarness):
    template: dict[str, Any] = {
        "metadata": {"labels": {"a": "b"}},
        "spec": {"containers": [{"name": "c", "image": "x"}]},
    }
    url = "/apis/apps/v1/namespaces/here/daemonsets"
    body = {"metadata": {"name": "d"}, "spec": {"selector": {"matchLabels": {"a": "b"}}, "template": template}}
    key = "deprecated.daemonset.template.generation"
    assert world.made(url, body)["metadata"]["annotations"][key] == "1"
    template["spec"]["containers"][0]["image"] = "y"
    reply = world.ask("PUT", f"{url}/d", body)
    assert (reply.body["metadata"]["annotations"][key], reply.body["metadata"]["generation"]) == ("2", 2)


def test_resizing_must_not_change_the_quality_of_service(world: ApiServerHarness):
    world.made("/api/v1/namespaces/here/pods", pod())
    change = {"spec": {"containers": [{"name": "c", "resources": {"requests": {"cpu": "100m"}}}]}}
    content = "application/strategic-merge-patch+json"
    reply = world.ask("PATCH", "/api/v1/namespaces/here/pods/p/resize", change, content=content)
    assert reply.status == 422
    assert "Pod QOS Class may not change as a result of resizing" in reply.message
