"""The pod-set controller through the API: listed pods come, are counted and go, and none goes by mistake."""

from __future__ import annotations

import json
from functools import partial
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.errors import AnswerLost, NotSent
from plimsoll.local.controller_manager.services import build_garbage_collector_services
from tests.effort import choose_calls
from tests.faults import CrashAfter
from tests.faults.answers import Answer5xx, LoseAnswers
from tests.faults.faulty_transport import FaultyTransport, Read, TransportFaults
from tests.faults.late_watches import LateWatches
from tests.faults.lies import Lie
from tests.kafka.controllers.pod_set_cluster import (
    LABELS,
    PODS,
    REVISION,
    SETS,
    CrashingPodSetCluster,
    PodSetCluster,
    build_listed_pod,
    build_parts,
    build_pod_set,
)
from tests.local.apiserver.builders import MERGE, pod
from tests.objects.crds.kafka_definitions import list_our_definitions

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.components import Components
    from plimsoll.runtime.supervisor import Service
    from tests.faults.ports import Fault


@pytest.fixture
def cluster() -> Iterator[PodSetCluster]:
    with PodSetCluster() as cluster:
        yield cluster


# ---- pods come and are counted


def test_listed_pods_are_made_as_they_are_written_and_owned(cluster: PodSetCluster):
    made = cluster.make(0, 1, 7)
    assert cluster.live == ["c-p-0", "c-p-1", "c-p-7"]
    found = cluster.pods["c-p-7"]
    assert found["metadata"]["labels"] == LABELS
    assert found["metadata"]["annotations"] == build_listed_pod(7)["metadata"]["annotations"]
    assert found["spec"]["containers"][0]["image"] == "kafka:4.3.1"
    (owner,) = found["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == ("StrimziPodSet", "c-p", made["metadata"]["uid"])
    assert owner["controller"] is owner["blockOwnerDeletion"] is True
    assert cluster.counts == (3, 0, 3, 1)


def test_a_pod_counts_as_ready_while_it_is(cluster: PodSetCluster):
    cluster.make(0, 1)
    cluster.report("c-p-0")
    assert cluster.counts == (2, 1, 2, 1)
    cluster.report("c-p-1")
    assert cluster.counts == (2, 2, 2, 1)
    cluster.report("c-p-0", is_ready=False)
    assert cluster.counts == (2, 1, 2, 1)


def test_a_pod_of_another_revision_is_counted_and_not_rolled(cluster: PodSetCluster):
    cluster.make(0, 1)
    before = cluster.pods["c-p-0"]["metadata"]["uid"]
    cluster.relist(build_listed_pod(0, revision="r2"), build_listed_pod(1))
    assert cluster.counts == (2, 0, 1, 2)
    assert cluster.pods["c-p-0"]["metadata"]["uid"] == before

    cluster.end("c-p-0")
    assert cluster.pods["c-p-0"]["metadata"]["annotations"][REVISION] == "r2"
    assert cluster.counts == (2, 0, 2, 2)


def test_the_generation_is_reported_when_more_pods_are_listed(cluster: PodSetCluster):
    """So that `pods == readyPods` of the time before is not taken for the new pods being ready (K03)."""
    cluster.make(0)
    cluster.report("c-p-0")
    assert cluster.counts == (1, 1, 1, 1)
    cluster.relist(build_listed_pod(0), build_listed_pod(1))
    assert cluster.counts == (2, 1, 2, 2)


def test_a_pod_that_ended_or_was_deleted_is_made_again(cluster: PodSetCluster):
    cluster.make(0, 1)
    uids = {name: found["metadata"]["uid"] for name, found in cluster.pods.items()}
    cluster.report("c-p-0", "Failed", is_ready=False)
    cluster.end("c-p-0")
    cluster.end("c-p-1")
    assert cluster.live == ["c-p-0", "c-p-1"]
    assert all(found["metadata"]["uid"] != uids[name] for name, found in cluster.pods.items())


def test_a_quiet_set_costs_no_write(cluster: PodSetCluster):
    cluster.make(0, 1)
    cluster.report("c-p-0")
    version = cluster.ask("GET", f"{SETS}/c-p").body["metadata"]["resourceVersion"]
    cluster.run.advance_by(3600)
    assert cluster.ask("GET", f"{SETS}/c-p").body["metadata"]["resourceVersion"] == version


# ---- pods go


def test_a_pod_that_is_no_longer_listed_is_deleted(cluster: PodSetCluster):
    cluster.make(0, 1, 2)
    cluster.relist(build_listed_pod(0), build_listed_pod(2))
    assert cluster.live == ["c-p-0", "c-p-2"]
    assert cluster.counts[0] == 2


def test_an_empty_list_removes_all_pods(cluster: PodSetCluster):
    cluster.make(0, 1)
    cluster.relist()
    assert cluster.live == []
    assert cluster.counts == (0, 0, 0, 2)


def test_a_set_that_is_being_deleted_makes_nothing(cluster: PodSetCluster):
    cluster.make(0)
    cluster.patch(f"{SETS}/c-p", {"metadata": {"finalizers": ["example.com/held"]}})
    cluster.delete(f"{SETS}/c-p")
    cluster.end("c-p-0")
    assert cluster.live == []


def test_pods_of_others_are_left_alone(cluster: PodSetCluster):
    """One without the labels, one of another controller, and one in another namespace."""
    owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "r", "uid": "u", "controller": True}
    for name, metadata in (("plain", {}), ("owned", {"labels": LABELS, "ownerReferences": [owner]})):
        cluster.made(PODS, {**pod(name), "metadata": {"name": name, **metadata}})
    cluster.namespace("elsewhere")
    cluster.made("/api/v1/namespaces/elsewhere/pods", {**pod("c-p-9"), "metadata": {"name": "c-p-9", "labels": LABELS}})
    cluster.make(0)
    cluster.relist()
    assert cluster.live == ["owned", "plain"]
    assert cluster.ask("GET", "/api/v1/namespaces/elsewhere/pods/c-p-9").status == 200


# ---- adoption


def test_a_set_made_again_adopts_its_pods():
    """As after `kubectl delete --cascade=orphan`."""
    with PodSetCluster(parts=build_parts_with_garbage_collector) as cluster:
        cluster.make(0, 1)
        uids = {name: found["metadata"]["uid"] for name, found in cluster.pods.items()}
        cluster.delete(f"{SETS}/c-p", propagationPolicy="Orphan")
        assert all("ownerReferences" not in found["metadata"] for found in cluster.pods.values())
        made = cluster.make(0)
        assert cluster.live == ["c-p-0"]
        assert cluster.pods["c-p-0"]["metadata"]["uid"] == uids["c-p-0"]
        assert cluster.pods["c-p-0"]["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]


def test_pods_go_with_their_set():
    with PodSetCluster(parts=build_parts_with_garbage_collector) as cluster:
        cluster.make(0, 1)
        cluster.delete(f"{SETS}/c-p")
        cluster.run.advance_by(5)
        assert cluster.live == []


def build_parts_with_garbage_collector(components: Components) -> list[Service]:
    return [*build_parts(components), *build_garbage_collector_services(components)]


def test_a_listed_pod_whose_labels_a_user_removed_stays(cluster: PodSetCluster):
    cluster.make(0)
    cluster.patch(f"{PODS}/c-p-0", {"metadata": {"labels": None}})
    assert cluster.live == ["c-p-0"]
    assert cluster.pods["c-p-0"]["metadata"]["ownerReferences"]
    assert cluster.problem == ""


def test_a_pod_of_a_user_with_a_listed_name_is_named_and_kept(cluster: PodSetCluster):
    cluster.made(PODS, pod("c-p-1"))
    cluster.make(0, 1)
    assert "ownerReferences" not in cluster.pods["c-p-1"]["metadata"]
    assert cluster.problem == "pod c-p-1 exists and is not this pod set's"
    assert cluster.counts == (2, 0, 1, 1)
    cluster.end("c-p-1")
    cluster.run.advance_by(60)
    assert cluster.problem == ""
    assert cluster.pods["c-p-1"]["metadata"]["ownerReferences"]


# ---- nothing is removed because something could not be read


@pytest.mark.parametrize(
    ("entry", "path"),
    [
        ({"metadata": {"labels": LABELS}, "spec": {}}, "spec.pods[1].metadata.name"),
        ({"metadata": {"name": "", "labels": LABELS}, "spec": {}}, "spec.pods[1].metadata.name"),
        ({"metadata": {"name": 7, "labels": LABELS}, "spec": {}}, "spec.pods[1].metadata.name"),
        ({"metadata": {"name": "C_P"}, "spec": {}}, "spec.pods[1].metadata.name"),
        ({"spec": {}}, "spec.pods[1].metadata"),
        ({}, "spec.pods[1].metadata"),
        ({"metadata": {"name": "c-p-1", "labels": [1]}, "spec": {}}, "spec.pods[1].metadata.labels"),
        ({"metadata": {"name": "c-p-1", "annotations": {"a": 1}}, "spec": {}}, "spec.pods[1].metadata.annotations"),
        ({"metadata": {"name": "c-p-1", "labels": {}}, "spec": {}}, "spec.pods[1].metadata.labels"),
        ({"metadata": {"name": "c-p-1", "labels": LABELS}}, "spec.pods[1].spec"),
        ({"metadata": {"name": "c-p-1", "namespace": "elsewhere"}, "spec": {}}, "spec.pods[1].metadata.namespace"),
        (build_listed_pod(0), "spec.pods[1].metadata.name: c-p-0 is listed twice"),
    ],
)
def test_a_wrong_entry_removes_nothing_and_is_named(cluster: PodSetCluster, entry: Any, path: str):
    cluster.make(0, 1, 2)
    cluster.relist(build_listed_pod(0), entry, build_listed_pod(3))
    assert cluster.live == ["c-p-0", "c-p-1", "c-p-2", "c-p-3"]
    assert cluster.problem.startswith(path)
    cluster.relist(build_listed_pod(0))
    assert (cluster.live, cluster.problem) == (["c-p-0"], "")


@pytest.mark.parametrize("selector", [{}, {"matchExpressions": [{"key": "a", "operator": "Near"}]}])
def test_a_selector_that_cannot_be_used_adopts_and_removes_nothing(cluster: PodSetCluster, selector: Any):
    """An empty one would match every pod of the namespace."""
    cluster.made(PODS, pod("of-a-user"))
    cluster.make(0, 1)
    cluster.patch(f"{SETS}/c-p", {"spec": {"selector": {"matchLabels": None, "matchExpressions": None, **selector}}})
    cluster.relist(build_listed_pod(0))
    assert cluster.live == ["c-p-0", "c-p-1", "of-a-user"]
    assert cluster.problem.startswith("spec.selector")
    assert "ownerReferences" not in cluster.pods["of-a-user"]["metadata"]


@pytest.fixture
def loose() -> Iterator[PodSetCluster]:
    """With a definition that admits anything."""
    definitions = [body for body in list_our_definitions() if body["spec"]["names"]["kind"] == "StrimziPodSet"]
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    for version in definitions[0]["spec"]["versions"]:
        version["schema"] = {"openAPIV3Schema": anything}
    with PodSetCluster(definitions=definitions) as cluster:
        yield cluster


@pytest.mark.parametrize("pods", ["all of them", {"0": {}}, 3])
def test_a_set_that_cannot_be_decoded_removes_nothing_and_gets_a_condition(loose: PodSetCluster, pods: Any):
    loose.make(0, 1)
    loose.report("c-p-0")
    loose.patch(f"{SETS}/c-p", {"spec": {"pods": pods}})
    loose.run.advance_by(3600)
    assert loose.live == ["c-p-0", "c-p-1"]
    assert "cannot be decoded" in loose.problem
    assert loose.counts == (2, 1, 2, 1)

    loose.relist(build_listed_pod(0))
    assert (loose.live, loose.problem) == (["c-p-0"], "")


@pytest.mark.parametrize("patch", [{"spec": {"pods": None}}, {"spec": None}])
def test_a_set_without_a_list_removes_nothing(loose: PodSetCluster, patch: Any):
    loose.make(0, 1)
    loose.patch(f"{SETS}/c-p", patch)
    assert loose.live == ["c-p-0", "c-p-1"]
    assert "spec" in loose.problem


class ChangeBeforeRead:
    """A user changes the set right before the controller reads it once more, which it does before it removes pods."""

    def __init__(self) -> None:
        self.pods: list[Any] = []
        self._unharmed: Any = None

    def wrap(self, transport: Any) -> ChangeBeforeRead:
        self._unharmed = transport
        return self

    async def send(self, call: Any) -> Any:
        if self.pods and call.method == "GET" and call.path.endswith("/strimzipodsets/c-p"):
            pods, self.pods = self.pods, []
            body = json.dumps({"spec": {"pods": pods}}).encode()
            await self._unharmed.send(call._replace(method="PATCH", body=body, headers={"Content-Type": MERGE}))
        return await self._unharmed.send(call)

    async def aclose(self) -> None:
        await self._unharmed.aclose()


def test_nothing_is_removed_on_a_set_that_has_changed_since_it_was_read():
    """The list of the cache is not the server's any more."""
    change = ChangeBeforeRead()
    with PodSetCluster(through=change.wrap) as cluster:
        cluster.make(0, 1)
        uid = cluster.pods["c-p-1"]["metadata"]["uid"]
        change.pods = [build_listed_pod(0), build_listed_pod(1)]
        cluster.relist(build_listed_pod(0))
        cluster.run.advance_by(10)
        assert not change.pods
        assert cluster.pods["c-p-1"]["metadata"]["uid"] == uid
        assert cluster.live == ["c-p-0", "c-p-1"]
        assert cluster.counts == (2, 0, 2, 3)


def test_pods_are_not_made_twice_while_the_cache_is_behind():
    late = LateWatches()
    with PodSetCluster(through=late.wrap) as cluster:
        late.hold("pods")
        cluster.make(0)
        cluster.relist(build_listed_pod(0), build_listed_pod(1))
        cluster.run.advance_by(20)
        late.release("pods")
        cluster.run.advance_by(20)
        events = cluster.ask("GET", "/api/v1/namespaces/kafka/events").body["items"]
        assert sorted(event["message"] for event in events) == ["Created pod: c-p-0", "Created pod: c-p-1"]


# ---- failures


def test_a_pod_that_the_server_refuses_fails_alone(cluster: PodSetCluster):
    refused = build_listed_pod(1)
    refused["spec"] = {"containers": []}
    cluster.make(pods=[build_listed_pod(0), refused, build_listed_pod(2)])
    assert cluster.live == ["c-p-0", "c-p-2"]
    assert "spec.containers" in cluster.problem
    assert cluster.counts == (3, 0, 2, 1)
    cluster.relist(build_listed_pod(0), build_listed_pod(1), build_listed_pod(2))
    cluster.run.advance_by(5)
    assert (cluster.live, cluster.problem) == (["c-p-0", "c-p-1", "c-p-2"], "")


def test_a_crash_after_any_call_leads_to_the_same_end():
    crash = CrashAfter(1)
    for number in choose_calls(200):
        crash = CrashAfter(number)
        with CrashingPodSetCluster(crash) as cluster:
            cluster.surviving(partial(_have, cluster))
            cluster.surviving(lambda: cluster.run.advance_by(10))
            cluster.surviving(lambda: cluster.relist(build_listed_pod(0), build_listed_pod(3)))
            cluster.surviving(lambda: cluster.run.advance_by(60))
            assert cluster.live == ["c-p-0", "c-p-3"], number
            assert cluster.counts[0] == 2
        if crash.struck is None:
            assert number > 8
            return
    pytest.fail("there are more calls than were thought")


def _have(cluster: CrashingPodSetCluster) -> None:
    assert cluster.ask("POST", SETS, build_pod_set(0, 1, 2)).status in {201, 409}
    cluster.run.settle()


@pytest.mark.parametrize("is_lost", [True, False], ids=["answer lost", "not sent"])
def test_any_call_may_fail_once(is_lost: bool):
    for number in choose_calls(200, first=2 if is_lost else 3):
        fault: Fault = LoseAnswers(number, error=lambda: AnswerLost("lost"))
        if not is_lost:
            fault = Answer5xx(number, error=lambda _: NotSent("refused"))
        with PodSetCluster(through=fault.wrap) as cluster:
            cluster.make(0, 1, 2)
            cluster.run.advance_by(30)
            uids = {name: found["metadata"]["uid"] for name, found in cluster.pods.items()}
            cluster.relist(build_listed_pod(0), build_listed_pod(3))
            cluster.run.advance_by(60)
            assert cluster.live == ["c-p-0", "c-p-3"], number
            assert cluster.pods["c-p-0"]["metadata"]["uid"] == uids["c-p-0"]
            assert (cluster.counts, cluster.problem) == ((2, 0, 2, 2), ""), number
        if fault.struck is None:
            assert number > 8
            return
    pytest.fail("there are more calls than were thought")


@pytest.mark.parametrize(
    "lie",
    [
        Lie.EMPTY,
        Lie.HALF,
        Lie.OTHER_HALF,
        Lie.DUPLICATED,
        Lie.STALE,
        Lie.TRUNCATED,
        Lie.UNDECODABLE,
        Lie.STALLED,
        Lie.SERVER_ERROR,
    ],
)
@pytest.mark.parametrize(
    "read", [Read("list", "pods"), Read("list", "strimzipodsets"), Read("watch", "strimzipodsets")]
)
def test_a_lying_list_or_watch_removes_no_pod(read: Read, lie: Lie):
    faults: list[TransportFaults] = []

    def wrap(transport: Any) -> FaultyTransport:
        return FaultyTransport(transport, faults[0])

    cluster = PodSetCluster(through=wrap)
    faults.append(TransportFaults(cluster.run.clock))
    with cluster:
        cluster.make(0, 1, 2)
        cluster.report("c-p-1")
        uids = {name: found["metadata"]["uid"] for name, found in cluster.pods.items()}
        faults[0].start(read, lie)
        cluster.run.advance_by(900)
        assert cluster.live == ["c-p-0", "c-p-1", "c-p-2"]
        faults[0].stop()
        cluster.kill()
        cluster.start()
        cluster.run.advance_by(30)
        assert {name: found["metadata"]["uid"] for name, found in cluster.pods.items()} == uids
        assert (cluster.counts, cluster.problem) == ((3, 1, 3, 1), "")
