"""Which pods may be taken off their node: the rules of docs/design/nodes.md 6.8, each with what switches it off."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.planning.scaledown.drainability import ControllerInfo, DrainabilityStatus, DrainOutcome, DrainRules
from plimsoll.nodes.planning.scaledown.pdbs import RemainingPdbs
from tests.nodes.planning.scaledown.builders import NOON, budget, pod, policy

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod
    from plimsoll.objects.api.policy import PodDisruptionBudget
    from tests.golden.reviewed_sentences import ReviewedSentences

CA = "cluster-autoscaler.kubernetes.io"
RS = ("default", "ReplicaSet", "rs")
DISK: dict[str, Any] = {"volumes": [{"name": "scratch", "emptyDir": {}}]}


def verdict(
    of: Pod,
    *,
    budgets: tuple[PodDisruptionBudget, ...] = (),
    controllers: dict[tuple[str, str, str], ControllerInfo] | None = None,
    **options: Any,
) -> DrainabilityStatus:
    rules = DrainRules(
        options=policy(**options).scale_down,
        now=NOON,
        pdbs=RemainingPdbs(budgets),
        controllers=controllers or {},
    )
    return rules.check(of)


def gone(seconds: float, **spec: Any) -> Pod:
    """A pod that was deleted so many seconds ago."""
    when = (NOON - timedelta(seconds=seconds)).isoformat()
    return pod(owner="", metadata={"deletionTimestamp": when}, **spec)


def system(age_s: float, **more: Any) -> Pod:
    made = (NOON - timedelta(seconds=age_s)).isoformat()
    return pod(namespace="kube-system", metadata={"creationTimestamp": made}, **more)


def test_a_pod_of_a_replica_set_moves():
    assert verdict(pod()) == DrainabilityStatus(outcome=DrainOutcome.MOVE)


def test_a_mirror_pod_is_skipped_though_it_has_no_controller():
    assert verdict(pod(owner="", annotations={"kubernetes.io/config.mirror": "x"})).outcome is DrainOutcome.SKIP


@pytest.mark.parametrize(("seconds", "drain"), [(60, DrainOutcome.BLOCK), (61, DrainOutcome.SKIP)])
def test_a_pod_terminating_past_its_grace_and_thirty_seconds_is_skipped(seconds: int, drain: DrainOutcome):
    assert verdict(gone(seconds)).outcome is drain
    assert verdict(gone(seconds + 70, terminationGracePeriodSeconds=100)).outcome is drain


@pytest.mark.parametrize("owner", ["ReplicaSet", "StatefulSet", "Job", "DaemonSet"])
def test_a_pod_whose_controller_is_gone_blocks(owner: str):
    found = verdict(pod(owner=owner), controllers={("default", owner, "rs"): ControllerInfo(exists=False)})
    assert (found.outcome, found.code) == (DrainOutcome.BLOCK, "ControllerNotFound")


def test_a_controller_that_was_not_looked_up_counts_as_there():
    assert verdict(pod(), min_replica_count=5).outcome is DrainOutcome.MOVE


def test_too_few_replicas_block():
    few = {RS: ControllerInfo(replicas=1)}
    assert verdict(pod(), controllers=few).outcome is DrainOutcome.MOVE
    assert verdict(pod(), controllers=few, min_replica_count=2).code == "MinReplicasReached"
    assert (
        verdict(pod(), controllers={RS: ControllerInfo(replicas=2)}, min_replica_count=2).outcome is DrainOutcome.MOVE
    )


def test_replicas_of_a_stateful_set_are_not_counted():
    few = {("default", "StatefulSet", "rs"): ControllerInfo(replicas=1)}
    assert verdict(pod(owner="StatefulSet"), controllers=few, min_replica_count=2).outcome is DrainOutcome.MOVE


def test_daemon_pods_may_go_and_need_no_place():
    assert verdict(pod(owner="DaemonSet", **DISK)).outcome is DrainOutcome.LET_GO
    assert verdict(pod(owner="", annotations={f"{CA}/daemonset-pod": "true"})).outcome is DrainOutcome.LET_GO


def test_safe_to_evict_overrides_what_comes_after_it():
    assert verdict(pod(owner="", annotations={f"{CA}/safe-to-evict": "true"}, **DISK)).outcome is DrainOutcome.MOVE


def test_safe_to_evict_does_not_bring_a_controller_back():
    safe = pod(annotations={f"{CA}/safe-to-evict": "true"})
    assert verdict(safe, controllers={RS: ControllerInfo(exists=False)}).code == "ControllerNotFound"


def test_a_pod_that_has_ended_needs_no_place():
    assert verdict(pod(owner="", status={"phase": "Succeeded"})).outcome is DrainOutcome.LET_GO


def test_on_completion_waits():
    found = verdict(pod(owner="", annotations={f"{CA}/safe-to-evict": "on-completion"}))
    assert (found.outcome, found.code, found.blocks_node) == (DrainOutcome.WAIT, "BlockedByOnCompletionPod", True)


def test_a_pod_without_a_controller_blocks():
    assert verdict(pod(owner="")).code == "NotReplicated"
    assert verdict(pod(owner=""), skip_nodes_with_custom_controller_pods=False).code == "NotReplicated"


def test_a_custom_controller_will_do_when_it_may():
    assert verdict(pod(owner="Kafka")).code == "NotReplicated"
    assert verdict(pod(owner="Kafka"), skip_nodes_with_custom_controller_pods=False).outcome is DrainOutcome.MOVE


def test_a_young_system_pod_without_a_budget_blocks_for_an_hour():
    assert verdict(system(3600)).code == "UnmovableKubeSystemPod"
    assert verdict(system(3601)).outcome is DrainOutcome.MOVE
    assert verdict(system(61), blocking_system_pod_distruption_timeout="1m").outcome is DrainOutcome.MOVE
    assert verdict(system(5), skip_nodes_with_system_pods=False).outcome is DrainOutcome.MOVE


def test_a_system_pod_with_a_budget_may_go():
    covered = system(5, labels={"app": "dns"})
    assert (
        verdict(covered, budgets=(budget(allowed=1, namespace="kube-system", app="dns"),)).outcome is DrainOutcome.MOVE
    )
    assert verdict(covered, budgets=(budget(allowed=1, app="dns"),)).code == "UnmovableKubeSystemPod"


def test_safe_to_evict_false_blocks():
    assert verdict(pod(annotations={f"{CA}/safe-to-evict": "false"})).code == "NotSafeToEvictAnnotation"


@pytest.mark.parametrize("source", [{"emptyDir": {}}, {"hostPath": {"path": "/tmp"}}])
def test_local_storage_blocks_unless_switched_off_or_listed(source: dict[str, Any], reviewed: ReviewedSentences):
    local: dict[str, Any] = {"volumes": [{"name": "a", **source}, {"name": "b", **source}]}
    assert verdict(pod(**local)).code == "LocalStorageRequested"
    assert verdict(pod(**local), skip_nodes_with_local_storage=False).outcome is DrainOutcome.MOVE
    listed = f"{CA}/safe-to-evict-local-volumes"
    reviewed(verdict(pod(annotations={listed: "a"}, **local)).message)
    assert verdict(pod(annotations={listed: "a, b"}, **local)).outcome is DrainOutcome.MOVE


def test_an_empty_dir_in_memory_is_not_local_storage():
    assert verdict(pod(volumes=[{"name": "m", "emptyDir": {"medium": "Memory"}}])).outcome is DrainOutcome.MOVE


def test_a_budget_that_allows_no_eviction_blocks():
    web = pod(labels={"app": "web"})
    assert verdict(web, budgets=(budget(allowed=1, app="web"),)).outcome is DrainOutcome.MOVE
    assert verdict(web, budgets=(budget(allowed=1, app="web"), budget("c", allowed=0))).code == "NotEnoughPdb"
    assert (
        verdict(web, budgets=(budget(allowed=0, app="db"), budget(allowed=0, namespace="x"))).outcome
        is DrainOutcome.MOVE
    )


def test_the_first_rule_that_decides_wins():
    unsafe = pod(owner="", annotations={f"{CA}/safe-to-evict": "false"}, **DISK)
    assert verdict(unsafe).code == "NotReplicated"
    owned = pod(annotations={f"{CA}/safe-to-evict": "false"}, **DISK)
    assert verdict(owned, budgets=(budget(allowed=0),)).code == "NotSafeToEvictAnnotation"
