"""What a plan makes of dumps: who waits, who holds a node, who is set aside, what admission would have added."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.simulation.plan.inputs import PlanInput, read_plan_input

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

Json = dict[str, Any]
GOLDEN = Path(__file__).parents[2] / "fixtures" / "kubernetes" / "golden" / "scheduler.jsonl"


def pod(name: str, *, spec: Json | None = None, status: Json | None = None, **metadata: Any) -> Json:
    container = {"name": "c", "image": "x", "resources": {"requests": {"cpu": "1"}}}
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": "default", **metadata},
        "spec": {"containers": [container], **(spec or {})},
        "status": {"phase": "Pending", **(status or {})},
    }


def node(name: str, **labels: str) -> Json:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"capacity": {"cpu": "4", "memory": "16Gi"}},
    }


def dump(*objects: Json) -> bytes:
    """As kubectl prints it."""
    return json.dumps(
        {"apiVersion": "v1", "kind": "List", "metadata": {"resourceVersion": ""}, "items": objects}
    ).encode()


def read(*objects: Json, beside: Json | None = None) -> PlanInput:
    files = [("-", dump(*objects))]
    return read_plan_input([*files, ("groups.yaml", json.dumps(beside).encode())] if beside else files)


def waiting(given: PlanInput) -> list[str]:
    return [pending.key for pending in given.snapshot.pending]


def held(given: PlanInput) -> list[str]:
    """Pods that take room on nodes."""
    return sorted(
        placed.pod.metadata.name for state in given.snapshot.view.nodes.values() for placed in state.pods.values()
    )


OF_A_DAEMON_SET = [{"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "logs", "uid": "1", "controller": True}]


class TestPlannedPods:
    def test_a_pod_without_a_node(self):
        assert waiting(read(pod("web-0"))) == ["default/web-0"]

    @pytest.mark.parametrize(
        ("one", "why"),
        [
            (pod("p", spec={"schedulingGates": [{"name": "quota"}]}), "held back by scheduling gates"),
            (pod("p", ownerReferences=OF_A_DAEMON_SET), "of daemon sets, for which no node is added"),
            (pod("p", spec={"priority": -11}), "expendable (priority below -10)"),
            (pod("p", status={"nominatedNodeName": "n"}), "nominated to a node"),
            (
                pod("p", annotations={"autoscaling.x-k8s.io/consume-provisioning-request": "r"}),
                "covered by a ProvisioningRequest",
            ),
        ],
        ids=["gated", "daemon", "expendable", "nominated", "consuming"],
    )
    def test_set_aside_and_counted(self, one: Json, why: str):
        given = read(one, pod("web-0"), node("n"))
        assert waiting(given) == ["default/web-0"]
        assert given.set_aside == {"default/p": why}

    @pytest.mark.parametrize(
        "one",
        [
            pod("p", status={"phase": "Succeeded"}),
            pod("p", status={"phase": "Failed"}),
            pod("p", deletionTimestamp="2025-01-01T00:00:00Z"),
            pod("p", spec={"nodeName": "n"}, status={"phase": "Running"}),
        ],
        ids=["succeeded", "failed", "leaving", "running"],
    )
    def test_a_pod_that_does_not_wait_is_neither_pending_nor_set_aside(self, one: Json):
        given = read(one, node("n"))
        assert (waiting(given), given.set_aside) == ([], {})

    def test_a_pod_at_the_cutoff_is_not_expendable(self):
        assert waiting(read(pod("p", spec={"priority": -10}))) == ["default/p"]


class TestPodsThatHoldRoom:
    @pytest.mark.parametrize(
        ("one", "holds"),
        [
            (pod("p", spec={"nodeName": "n"}, status={"phase": "Running"}), ["p"]),
            (pod("p", spec={"nodeName": "n"}, deletionTimestamp="2025-01-01T00:00:00Z"), ["p"]),
            (pod("p", status={"nominatedNodeName": "n"}), ["p"]),
            (pod("p", spec={"nodeName": "n"}, status={"phase": "Succeeded"}), []),
            (pod("p", spec={"nodeName": "n", "priority": -11}, status={"phase": "Running"}), []),
        ],
        ids=["running", "leaving", "nominated", "ended", "expendable"],
    )
    def test_on_its_node(self, one: Json, holds: list[str]):
        assert held(read(one, node("n"))) == holds


class TestFiles:
    def test_a_typed_list_says_what_its_items_are(self):
        bare = {name: value for name, value in node("n").items() if name not in {"kind", "apiVersion"}}
        listed = json.dumps({"kind": "NodeList", "apiVersion": "v1", "items": [bare]}).encode()
        assert list(read_plan_input([("-", listed)]).snapshot.view.nodes) == ["n"]

    def test_an_empty_list_is_an_empty_cluster(self):
        listed = json.dumps({"kind": "List", "apiVersion": "v1", "items": None}).encode()
        assert waiting(read_plan_input([("-", listed)])) == []

    def test_an_object_in_two_dumps_counts_once(self):
        given = read_plan_input([("a", dump(pod("p"))), ("b", dump(pod("p"), node("n")))])
        assert waiting(given) == ["default/p"]

    def test_two_dumps_that_disagree_are_refused(self, reviewed: ReviewedSentences):
        with pytest.raises(InvalidInput) as refused:
            read_plan_input([("a", dump(pod("p"))), ("b", dump(pod("p", spec={"nodeName": "n"})))])
        reviewed(str(refused.value))

    def test_an_entry_and_a_pod_of_one_name_are_refused(self, reviewed: ReviewedSentences):
        with pytest.raises(InvalidInput) as raised:
            read(pod("web"), beside={"pods": [{"name": "web", "template": {"spec": pod("web")["spec"]}}]})
        reviewed(str(raised.value))

    @pytest.mark.parametrize("text", [b"", b"# nothing\n", b"[]", b"hello", b"[1, 2]"])
    def test_neither_a_scenario_nor_an_object(self, text: bytes):
        with pytest.raises(InvalidInput) as caught:
            read_plan_input([("x.yaml", text)])
        assert caught.value.path == "x.yaml"

    def test_an_item_without_a_name_is_named_by_its_place(self):
        with pytest.raises(InvalidInput) as caught:
            read(pod("p"), {"apiVersion": "v1", "kind": "Pod", "metadata": {}})
        assert caught.value.path == "-: items[1]"

    def test_an_unreadable_pod_is_warned_about_and_the_others_are_planned(self):
        given = read(pod("bad", spec={"containers": "none"}), pod("web-0"))
        assert waiting(given) == ["default/web-0"]
        assert given.warnings == (
            "Pod default/bad cannot be read: spec.containers: Expected `array`, got `str`; it is not planned for",
        )

    def test_what_a_real_server_prints_can_be_read(self):
        answers = [json.loads(line) for line in GOLDEN.read_text().splitlines()]
        bodies = [
            answer["response"]
            for answer in answers
            if isinstance(answer["response"], dict) and "/pods/" in answer["path"]
        ]
        pods = {
            body["metadata"]["name"]: {"kind": "Pod", **body} for body in bodies if "containers" in body.get("spec", {})
        }
        nodes = next(answer["response"] for answer in answers if answer["title"] == "nodes of this group")
        given = read_plan_input([("pods", dump(*pods.values())), ("nodes", json.dumps(nodes).encode())])
        assert given.warnings == ()
        assert len(given.snapshot.view.nodes) == len(nodes["items"])
        assert "default/cpu" in waiting(given)


class TestNodesOfManagedClusters:
    GROUPS: Json = {"nodeGroups": [{"id": "pool", "max": 5, "template": {"capacity": {"cpu": 4, "memory": "16Gi"}}}]}

    def test_a_pools_label_says_to_which_group_a_node_belongs(self):
        nodes = [node(name, **{"cloud.google.com/gke-nodepool": "pool"}) for name in ("x", "y")]
        given = read(*nodes, beside=self.GROUPS)
        assert given.snapshot.group_of == {"x": "pool", "y": "pool"}
        assert [group.target_size for group in given.snapshot.groups] == [2]
        assert len(given.snapshot.view.nodes) == 2


class TestWhatAdmissionWouldHaveAdded:
    RANGE: Json = {
        "apiVersion": "v1",
        "kind": "LimitRange",
        "metadata": {"name": "defaults", "namespace": "ml"},
        "spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]},
    }

    def test_a_pod_template_gets_the_defaults_of_its_namespace(self):
        template = {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "worker", "namespace": "ml"},
            "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}},
        }
        request = {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": {"name": "r", "namespace": "ml"},
            "spec": {
                "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
                "podSets": [{"count": 2, "podTemplateRef": {"name": "worker"}}],
            },
        }
        (one,) = read(template, request, self.RANGE).snapshot.pending
        assert (one.key, one.count) == ("ml/r/0", 2)
        assert one.pod.spec.containers[0].resources.requests == {"cpu": "3"}

    def test_a_request_may_be_written_as_its_first_design_did(self):
        template = {
            "apiVersion": "v1",
            "kind": "PodTemplate",
            "metadata": {"name": "t"},
            "template": {"spec": {"containers": []}},
        }
        request = {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": {"name": "r"},
            "spec": {
                "provisioningClass": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
                "podSets": [{"count": 1, "podTemplateRef": {"name": "t"}}],
            },
        }
        assert waiting(read(template, request)) == ["default/r/0"]

    def test_entries_of_a_scenario_too(self):
        entry = {"name": "web", "namespace": "ml", "template": {"spec": {"containers": [{"name": "c", "image": "x"}]}}}
        (one,) = read(self.RANGE, beside={"pods": [entry]}).snapshot.pending
        assert one.pod.spec.containers[0].resources.requests == {"cpu": "3"}
