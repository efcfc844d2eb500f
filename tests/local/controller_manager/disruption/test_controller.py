"""The status of disruption budgets: arithmetic against counting by hand, and the controller that writes it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.controller_manager.disruption.allowed_disruptions import compute_status
from plimsoll.local.controller_manager.services import build_disruption_services
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod, PodCondition, PodStatus
from plimsoll.objects.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec, PodDisruptionBudgetStatus
from tests.local.apiserver.builders import MERGE
from tests.local.local_cluster import LocalClusterHarness

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PDBS = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
PODS = "/api/v1/namespaces/default/pods"
RS = "/apis/apps/v1/namespaces/default/replicasets"


# ---- arithmetic


def a_pod(name: str, *, ready: bool, leaving: bool) -> Pod:
    condition = PodCondition(type="Ready", status="True" if ready else "False")
    metadata = ObjectMeta(name=name, deletion_timestamp=NOW if leaving else None)
    return Pod(metadata=metadata, status=PodStatus(conditions=(condition,)))


amounts = st.one_of(st.integers(0, 12), st.integers(0, 100).map(lambda share: f"{share}%"))
pod_lists = st.lists(st.tuples(st.booleans(), st.booleans(), st.sampled_from([None, 0, 60, 200])), max_size=10)


@settings(max_examples=300, deadline=None)
@given(amount=amounts, is_minimum=st.booleans(), drawn=pod_lists, scale=st.integers(0, 12))
def test_disruptions_allowed_are_what_counting_by_hand_gives(
    amount: int | str, is_minimum: bool, drawn: list[tuple[bool, bool, int | None]], scale: int
):
    pods = [a_pod(f"p{number}", ready=ready, leaving=leaving) for number, (ready, leaving, _) in enumerate(drawn)]
    granted = {f"p{n}": NOW - timedelta(seconds=ago) for n, (_, _, ago) in enumerate(drawn) if ago is not None}
    spec = PodDisruptionBudgetSpec(
        min_available=amount if is_minimum else None, max_unavailable=None if is_minimum else amount
    )
    budget = PodDisruptionBudget(spec=spec, status=PodDisruptionBudgetStatus(disrupted_pods=granted))

    status, book = compute_status(budget, pods, scale, NOW)

    expected = len(pods) if is_minimum and isinstance(amount, int) else scale
    share = Fraction(int(amount[:-1]), 100) * expected if isinstance(amount, str) else Fraction(amount)
    whole = -(-share.numerator // share.denominator)
    must_stay = whole if is_minimum else max(0, expected - whole)
    waiting = {f"p{n}" for n, (_, leaving, ago) in enumerate(drawn) if ago is not None and ago <= 120 and not leaving}
    healthy = sum(1 for n, (ready, leaving, _) in enumerate(drawn) if ready and not leaving and f"p{n}" not in waiting)
    allowed = 0
    while expected and healthy - (allowed + 1) >= must_stay:
        allowed += 1
    assert (status.expected_pods, status.desired_healthy, status.current_healthy) == (expected, must_stay, healthy)
    assert status.disruptions_allowed == allowed
    assert set(status.disrupted_pods) == waiting == set(book.pods)


# ---- the controller


class DisruptionCluster(LocalClusterHarness):
    def __init__(self) -> None:
        super().__init__(build_disruption_services)

    def budget(self, name: str = "b", **spec: Any) -> None:
        selector = {"matchLabels": {"app": "w"}}
        self.made(PDBS, {"metadata": {"name": name}, "spec": {"selector": selector, **spec}})
        self.run.settle()

    def replica_set(self, replicas: int) -> dict[str, Any]:
        template = {"metadata": {"labels": {"app": "w"}}, "spec": {"containers": [{"name": "c", "image": "x"}]}}
        spec = {"replicas": replicas, "selector": {"matchLabels": {"app": "w"}}, "template": template}
        made = self.made(RS, {"metadata": {"name": "w"}, "spec": spec})
        owner = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": "w", "uid": made["metadata"]["uid"]}
        return {**owner, "controller": True}

    def pod(self, name: str, *, ready: bool = True, owner: dict[str, Any] | None = None) -> None:
        metadata: dict[str, Any] = {"name": name, "labels": {"app": "w"}}
        if owner is not None:
            metadata["ownerReferences"] = [owner]
        spec = {"nodeName": "n", "containers": [{"name": "c", "image": "x"}]}
        self.made(PODS, {"metadata": metadata, "spec": spec})
        conditions = [{"type": "Ready", "status": "True" if ready else "False"}]
        body = {"status": {"phase": "Running", "conditions": conditions}}
        assert self.ask("PATCH", f"{PODS}/{name}/status", body, content=MERGE).status == 200
        self.run.settle()

    def evict(self, name: str) -> int:
        body = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": name, "namespace": "default"}}
        status = self.ask("POST", f"{PODS}/{name}/eviction", body).status
        self.run.settle()
        return status

    def status(self, name: str = "b") -> Any:
        return self.ask("GET", f"{PDBS}/{name}").body["status"]

    def numbers(self) -> tuple[int, int, int, int]:
        status = self.status()
        return (
            status["expectedPods"],
            status["currentHealthy"],
            status["desiredHealthy"],
            status["disruptionsAllowed"],
        )


def test_a_whole_minimum_counts_the_pods_there_are():
    with DisruptionCluster() as world:
        world.pod("a")
        world.pod("b")
        world.budget(minAvailable=1)
        assert world.numbers() == (2, 2, 1, 1)
        world.pod("c", ready=False)
        assert world.numbers() == (3, 2, 1, 1)


def test_a_maximum_counts_the_pods_the_controller_wants():
    with DisruptionCluster() as world:
        owner = world.replica_set(4)
        world.pod("a", owner=owner)
        world.pod("b", owner=owner)
        world.budget(maxUnavailable="25%")
        assert world.numbers() == (4, 2, 3, 0)
        world.pod("c", owner=owner)
        world.pod("d", owner=owner)
        assert world.numbers() == (4, 4, 3, 1)


def test_a_budget_without_pods_allows_nothing_and_says_so():
    with DisruptionCluster() as world:
        world.budget(maxUnavailable=1)
        assert world.numbers() == (0, 0, 0, 0)
        assert [condition["reason"] for condition in world.status()["conditions"]] == ["InsufficientPods"]


def test_evictions_go_on_until_the_budget_is_spent():
    with DisruptionCluster() as world:
        for name in ("a", "b", "c"):
            world.pod(name)
        world.budget(minAvailable=2)
        assert world.evict("a") == 201
        assert world.numbers() == (3, 2, 2, 0)
        assert world.evict("b") == 429
        world.ask("DELETE", f"{PODS}/a?gracePeriodSeconds=0")
        world.pod("d")
        assert world.evict("b") == 201


def test_a_changed_budget_is_counted_again():
    with DisruptionCluster() as world:
        world.pod("a")
        world.budget(minAvailable=1)
        assert world.evict("a") == 429
        world.ask("PATCH", f"{PDBS}/b", {"spec": {"minAvailable": 0}}, content=MERGE)
        world.run.settle()
        assert world.status()["observedGeneration"] == 2
        assert world.evict("a") == 201


def test_a_granted_eviction_that_never_happens_is_given_up_after_two_minutes():
    with DisruptionCluster() as world:
        world.pod("a")
        world.pod("b")
        world.budget(minAvailable=1)
        granted = {"a": "2026-01-01T00:00:00Z"}
        world.ask("PATCH", f"{PDBS}/b/status", {"status": {"disruptedPods": granted}}, content=MERGE)
        world.run.settle()
        assert world.numbers() == (2, 1, 1, 0)
        world.run.advance_by(119)
        assert world.status()["disruptedPods"] == granted
        world.run.advance_by(3)
        assert world.numbers() == (2, 2, 1, 1)
        assert "disruptedPods" not in world.status()


def test_pods_of_a_controller_without_a_scale_allow_nothing():
    with DisruptionCluster() as world:
        owner = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "u", "controller": True}
        world.pod("a", owner=owner)
        world.budget(maxUnavailable=1)
        condition = world.status()["conditions"][0]
        assert (condition["status"], condition["reason"]) == ("False", "SyncFailed")
        assert condition["message"] == "jobs.batch does not implement the scale subresource"


@pytest.mark.parametrize("killed_after", [0, 1, 2])
def test_a_restart_finds_the_same_numbers(killed_after: int):
    with DisruptionCluster() as world:
        names = ["a", "b", "c"]
        world.budget(minAvailable="50%")
        owner = world.replica_set(3)
        for number, name in enumerate(names):
            if number == killed_after:
                world.kill()
            world.pod(name, owner=owner)
        world.start()
        assert world.numbers() == (3, 3, 2, 1)
