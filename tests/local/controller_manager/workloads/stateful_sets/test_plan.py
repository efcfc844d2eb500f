"""The stateful set planner under any history of its pods: order, one pod an ordinal, an end."""

from __future__ import annotations

from datetime import UTC, datetime

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import REVISION_LABEL
from plimsoll.local.controller_manager.workloads.stateful_sets.identity import build_identity_labels
from plimsoll.local.controller_manager.workloads.stateful_sets.plan import (
    StatefulSetPlan,
    StatefulSetView,
    choose_revision,
    compute_stateful_set_status,
    plan_stateful_set,
)
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.pods import Pod, PodCondition, PodStatus
from plimsoll.objects.api.workloads import StatefulSet, StatefulSetOrdinals, StatefulSetSpec

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
OWNER = ObjectMeta(name="s", uid="s")


def _pod(ordinal: int, revision: str = "new", state: str = "ready") -> Pod:
    """`state`: ready, unready, failed, leaving."""
    condition = PodCondition(type="Ready", status="True" if state in {"ready", "leaving"} else "False")
    labels = {REVISION_LABEL: revision, **build_identity_labels(OWNER, ordinal)}
    metadata = ObjectMeta(
        name=f"s-{ordinal}",
        uid=f"u{ordinal}",
        labels=labels,
        deletion_timestamp=NOW if state == "leaving" else None,
    )
    status = PodStatus(phase="Failed" if state == "failed" else "Running", conditions=(condition,))
    return Pod(metadata=metadata, status=status)


def _view(pods: list[Pod], *, replicas: int, start: int = 0, policy: str = "OrderedReady") -> StatefulSetView:
    ordinals = StatefulSetOrdinals(start=start)
    spec = StatefulSetSpec(replicas=replicas, ordinals=ordinals, pod_management_policy=policy)
    owner = StatefulSet(metadata=OWNER, spec=spec)
    return StatefulSetView(stateful_set=owner, pods=tuple(pods), current="old", update="new", now=NOW)


_STATES = st.dictionaries(
    st.integers(0, 6),
    st.tuples(st.sampled_from(["old", "new"]), st.sampled_from(["ready", "unready", "failed", "leaving"])),
    max_size=6,
)
_POLICY = st.sampled_from(["OrderedReady", "Parallel"])


@given(states=_STATES, replicas=st.integers(0, 4), start=st.integers(0, 2), policy=_POLICY)
@settings(max_examples=300, deadline=None)
def test_any_set_comes_to_rest_with_one_new_pod_for_each_ordinal(
    states: dict[int, tuple[str, str]], replicas: int, start: int, policy: str
):
    pods = {ordinal: _pod(ordinal, *state) for ordinal, state in states.items()}
    for _ in range(60):
        view = _view(list(pods.values()), replicas=replicas, start=start, policy=policy)
        plan = plan_stateful_set(view)
        assert plan_stateful_set(view) == plan
        assert not set(plan.create) & set(pods)
        is_at_rest = all(pod.metadata.deletion_timestamp is None for pod in pods.values()) and plan == StatefulSetPlan()
        ill = [number for number, pod in pods.items() if pod.status.conditions[0].status != "True"]
        if is_at_rest and not ill:
            break
        for pod in plan.delete:
            pods.pop(int(pod.metadata.name.removeprefix("s-")))
        pods = {
            # A kubelet ends what leaves, and what runs becomes ready.
            number: _pod(number, pod.metadata.labels[REVISION_LABEL], _next(pod, start <= number < start + replicas))
            for number, pod in pods.items()
            if pod.metadata.deletion_timestamp is None
        }
        pods.update({ordinal: _pod(ordinal, choose_revision(view, ordinal), "unready") for ordinal in plan.create})
    else:
        raise AssertionError("it never came to rest")
    assert sorted(pods) == list(range(start, start + replicas))
    status = compute_stateful_set_status(view)
    assert (status.updated_replicas, status.current_revision) == (replicas, "new")


def _next(pod: Pod, is_wanted: bool) -> str:
    """A pod too many that failed is waited for, as in Kubernetes: a person has to bring it back."""
    return "failed" if pod.status.phase == "Failed" and is_wanted else "ready"


@given(states=_STATES, replicas=st.integers(0, 6))
@settings(max_examples=300, deadline=None)
def test_an_ordered_set_does_one_thing_at_a_time_and_starts_nothing_above_a_pod_that_is_not_well(
    states: dict[int, tuple[str, str]], replicas: int
):
    pods = [_pod(ordinal, *state) for ordinal, state in states.items()]
    plan = plan_stateful_set(_view(pods, replicas=replicas))
    assert len(plan.create) + len(plan.delete) <= 1
    well = {ordinal for ordinal, (_, state) in states.items() if state == "ready"}
    for ordinal in plan.create:
        assert set(range(ordinal)) <= well
    for pod in plan.delete:
        ordinal = int(pod.metadata.name.removeprefix("s-"))
        if ordinal >= replicas:
            assert set(range(replicas)) <= well
            assert ordinal == max(states)


def test_a_set_that_is_being_deleted_is_left_alone():
    view = _view([], replicas=3)
    metadata = msgspec.structs.replace(OWNER, deletion_timestamp=NOW)
    ending = msgspec.structs.replace(view.stateful_set, metadata=metadata)
    assert plan_stateful_set(msgspec.structs.replace(view, stateful_set=ending)) == StatefulSetPlan()
