"""Whatever a pod is and whenever it is looked at: the planner's word holds."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.kubelet.pod_status import (
    TERMINAL,
    PodAddresses,
    PodStatusUpdate,
    PodUnchanged,
    RemovePod,
    compute_pod_status,
)
from plimsoll.local.kubelet.settings import Pace
from plimsoll.objects.api.pods import Pod

START = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = PodAddresses(host_ip="10.128.0.1", pod_ip="10.64.0.1")

whole_seconds = st.integers(0, 40)
paces = st.builds(
    Pace,
    start_s=whole_seconds.map(float),
    stop_s=whole_seconds.map(float),
    run_s=st.none() | whole_seconds.map(float),
    exit_code=st.sampled_from([0, 1]),
)


@st.composite
def pods(draw: Any) -> Pod:
    inits = [{"name": "i", "image": "i"}, {"name": "s", "image": "s", "restartPolicy": "Always"}]
    spec: dict[str, Any] = {
        "nodeName": "n1",
        "containers": [{"name": name, "image": name} for name in draw(st.sampled_from(["a", "ab"]))],
        "initContainers": draw(st.sampled_from([[], inits[:1], inits])),
        "restartPolicy": draw(st.sampled_from(["Always", "OnFailure", "Never"])),
    }
    if draw(st.booleans()):
        spec["activeDeadlineSeconds"] = draw(st.integers(1, 60))
    metadata = {"name": "p", "namespace": "default", "uid": "u", "generation": 1}
    return msgspec.convert({"metadata": metadata, "spec": spec}, Pod)


def patched(pod: Pod, patch: dict[str, Any]) -> Pod:
    """The pod after the patch, as a server merges it."""
    whole = msgspec.to_builtins(pod)
    status = whole.setdefault("status", {})
    merged = {condition["type"]: condition for condition in status.get("conditions", ())}
    for condition in patch.get("conditions", ()):
        new = {**merged.get(condition["type"], {}), **condition}
        merged[condition["type"]] = {key: value for key, value in new.items() if value is not None}
    status.update(patch)
    status["conditions"] = list(merged.values())
    return msgspec.convert({**whole, "status": {k: v for k, v in status.items() if v is not None}}, Pod)


def deleted(pod: Pod, at: datetime, grace_s: int) -> Pod:
    metadata = msgspec.structs.replace(
        pod.metadata,
        deletion_timestamp=at + timedelta(seconds=grace_s),
        deletion_grace_period_seconds=grace_s,
    )
    return msgspec.structs.replace(pod, metadata=metadata)


def lived(pod: Pod, pace: Pace, moments: list[int]) -> list[Pod]:
    """The pod at each of the moments, in order, written whenever the planner says so."""
    history = []
    for second in sorted(moments):
        plan = compute_pod_status(pod, START + timedelta(seconds=second), place=PLACE, pace=pace)
        if isinstance(plan, PodStatusUpdate):
            pod = patched(pod, plan.patch)
        history.append(pod)
    return history


@settings(max_examples=150, deadline=None)
@given(pods(), paces, whole_seconds)
def test_what_is_reported_once_is_not_repeated(pod: Pod, pace: Pace, second: int):
    now = START + timedelta(seconds=second)
    plan = compute_pod_status(pod, now, place=PLACE, pace=pace)
    assert isinstance(plan, PodStatusUpdate)
    again = compute_pod_status(patched(pod, plan.patch), now, place=PLACE, pace=pace)
    # A container that ends the moment it starts has more to say.
    assert isinstance(again, PodUnchanged) or pace.run_s == 0


@settings(max_examples=150, deadline=None)
@given(pods(), paces, st.lists(st.integers(0, 400), min_size=1, max_size=12))
def test_phases_only_go_forward_and_starts_are_not_rewritten(pod: Pod, pace: Pace, moments: list[int]):
    order = ["Pending", "Running", "Succeeded", "Failed"]
    history = lived(pod, pace, moments)
    ranks = [min(order.index(item.status.phase), 2) for item in history]
    assert ranks == sorted(ranks)
    assert len({item.status.start_time for item in history}) == 1
    counts = [sum(status.restart_count for status in item.status.container_statuses) for item in history]
    assert counts == sorted(counts)


@settings(max_examples=150, deadline=None)
@given(pods(), paces, st.lists(st.integers(0, 200), max_size=6), st.integers(0, 60))
def test_a_deleted_pod_is_removed_when_its_grace_is_over_at_the_latest(
    pod: Pod, pace: Pace, moments: list[int], grace_s: int
):
    pod = lived(pod, pace, [0, *moments])[-1]
    asked = START + timedelta(seconds=max([0, *moments]))
    pod = deleted(pod, asked, max(grace_s, 1))
    end = asked + timedelta(seconds=max(grace_s, 1))
    for _ in range(3):
        plan = compute_pod_status(pod, end, place=PLACE, pace=pace)
        if isinstance(plan, RemovePod):
            break
        assert isinstance(plan, PodStatusUpdate)
        pod = patched(pod, plan.patch)
    assert isinstance(plan, RemovePod)
    assert pod.status.phase in TERMINAL


@settings(max_examples=150, deadline=None)
@given(pods(), paces, st.integers(0, 200))
def test_a_time_to_look_again_lies_ahead_and_nothing_happens_before_it(pod: Pod, pace: Pace, second: int):
    now = START + timedelta(seconds=second)
    pod = lived(pod, pace, [0, second, second])[-1]
    plan = compute_pod_status(pod, now, place=PLACE, pace=pace)
    if isinstance(plan, PodUnchanged) and plan.until is not None:
        assert plan.until > now
        just_before = plan.until - timedelta(seconds=1)
        if just_before > now:
            assert compute_pod_status(pod, just_before, place=PLACE, pace=pace) == plan
        assert compute_pod_status(pod, plan.until, place=PLACE, pace=pace) != plan
