from __future__ import annotations

import json
from typing import TYPE_CHECKING

from plimsoll.cli.commands.requirements import REQUIREMENTS
from plimsoll.kube.diagnosis import Namespaces
from plimsoll.kube.diagnosis.unreadable_objects import list_targets
from tests.kube.diagnosis.examinations import GUEST, DiagnosedCluster, InterceptingTransport, found
from tests.kube.embedded_api import status_reply
from tests.local.apiserver.builders import pod

if TYPE_CHECKING:
    from plimsoll.kube.transport import Request, Response


class MalformedPodLists(InterceptingTransport):
    """Another writer's mistake: lists of pods hold a field of the wrong type."""

    async def send(self, call: Request) -> Response:
        reply = await self.inner.send(call)
        if call.path != "/api/v1/pods":
            return reply
        listed = json.loads(reply.body)
        for item in listed["items"]:
            if item["metadata"]["name"].startswith("odd"):
                item["spec"]["containers"] = "none"
        return reply._replace(body=json.dumps(listed).encode())


def with_pods(cluster: DiagnosedCluster, *names: str) -> None:
    cluster.namespace("here")
    for name in names:
        cluster.made("/api/v1/namespaces/here/pods", pod(name))


def test_readable_objects_are_counted():
    with DiagnosedCluster() as cluster:
        with_pods(cluster, "a", "b")
        finding = found(cluster.examined("nodes"), "objects")
    assert finding.level == "ok"
    assert "all readable" in finding.message
    assert finding.details["objects"]["pods"] == 2


def test_an_object_that_cannot_be_read_is_named_with_its_field():
    with DiagnosedCluster() as cluster:
        with_pods(cluster, "a", "odd-1", "odd-2")
        examination = cluster.examined("nodes", through=MalformedPodLists)
    finding = found(examination, "objects.pods")
    assert finding.level == "warn"
    assert finding.message.startswith("2 of 3 pods cannot be read: here/odd-1: spec.containers: Expected `array")
    assert [(detail["namespace"], detail["name"]) for detail in finding.details["objects"]] == [
        ("here", "odd-1"),
        ("here", "odd-2"),
    ]
    assert examination.is_healthy


def test_what_may_not_be_listed_is_not_known():
    with DiagnosedCluster() as cluster:
        examination = cluster.examined("nodes", token=GUEST)
    finding = found(examination, "objects")
    assert finding.level == "unknown"
    assert finding.message.startswith("no kind could be listed: ")
    assert "forbidden" in finding.details["notSeen"]["pods"]
    assert found(examination, "rivals.nodes").level == "unknown"


def test_a_list_that_expires_on_the_way_is_started_over():
    asked: list[str] = []

    class Forgetful(InterceptingTransport):
        async def send(self, call: Request) -> Response:
            if call.path == "/api/v1/pods":
                asked.append(call.path)
                if len(asked) == 1:
                    return status_reply(410, "too old", reason="Expired")
            return await self.inner.send(call)

    with DiagnosedCluster() as cluster:
        finding = found(cluster.examined("kubelet", through=Forgetful), "objects")
    assert finding.level == "ok"
    assert len(asked) == 2


def test_long_lists_come_page_by_page():
    limits: set[str] = set()

    class Watching(InterceptingTransport):
        async def send(self, call: Request) -> Response:
            limits.update(value for name, value in call.query if name == "limit")
            return await self.inner.send(call)

    with DiagnosedCluster() as cluster:
        cluster.examined("kubelet", through=Watching)
    assert limits == {"500"}


def test_no_secrets_and_config_maps_are_listed():
    listed = {target.resource.plural for target in list_targets(REQUIREMENTS.values(), Namespaces())}
    assert {"nodes", "pods", "poddisruptionbudgets", "daemonsets", "replicasets"} <= listed
    assert not listed & {"secrets", "configmaps"}


def test_with_a_namespace_only_its_objects_are_listed():
    namespaces = Namespaces(own="kafka", watched="kafka")
    assert {target.namespace for target in list_targets([REQUIREMENTS["kafka"]], namespaces)} == {"kafka"}
    # The node autoscaler lists pods everywhere anyway.
    both = [
        target
        for target in list_targets([REQUIREMENTS["kafka"], REQUIREMENTS["nodes"]], namespaces)
        if target.resource.plural == "pods"
    ]
    assert [finding.namespace for finding in both] == [""]
