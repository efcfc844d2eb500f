"""A recording holds all that a plan depends on: read back, it gives the same plan, byte for byte."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from plimsoll.core.plans import encode
from plimsoll.core.resources import ResourceVector
from plimsoll.journal.errors import RecordingTooNew, UnreadableRecording
from plimsoll.journal.recordings import About, read_recording, write_recording
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.model.prices import Overlay
from plimsoll.nodes.model.snapshot import (
    CapacityType,
    GroupScaleDownOptions,
    MachineType,
    NodeGroup,
    PendingPods,
    Snapshot,
)
from plimsoll.nodes.planning.scaledown.drainability import ControllerInfo
from plimsoll.nodes.planning.scaledown.eligibility import ScaleDownState
from plimsoll.nodes.recording.policies import encode_policy, read_policy
from plimsoll.nodes.recording.replay import (
    build_recording,
    encode_result,
    find_differences,
    is_same,
    replay_loop,
    replay_recording,
)
from plimsoll.nodes.recording.scale_down_state import encode_state, read_state
from plimsoll.nodes.recording.snapshots import encode_snapshot, read_snapshot
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.scheduling.cluster_view import PlacedPod, PodKey
from tests.nodes.planning.random_clusters import clusters
from tests.nodes.planning.scale_up_clusters import policies, snapshots
from tests.nodes.planning.scaledown.builders import NOON, budget, group, node, pod, policy, snapshot
from tests.nodes.planning.scaledown.test_planner_properties import worlds

if TYPE_CHECKING:
    from plimsoll.nodes.config.policy import Policy
    from plimsoll.scheduling import ClusterView
    from tests.golden.reviewed_sentences import ReviewedSentences

ABOUT = About(subsystem="nodes", made_at=NOON, plimsoll="0")
few = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def again(value: Any) -> Any:
    """Through the bytes of a file."""
    return json.loads(encode(value))


def planned(given_snapshot: Snapshot, given_policy: Policy, known: ScaleDownState | None = None) -> bytes:
    return encode(encode_result(replay_loop(given_snapshot, given_policy, known or ScaleDownState())))  # type: ignore[arg-type]


@few
@given(snapshots(), policies())
def test_growth_is_planned_the_same(given_snapshot: Snapshot, given_policy: Policy):
    read = read_snapshot(again(encode_snapshot(given_snapshot)))
    assert planned(read, read_policy(again(encode_policy(given_policy)))) == planned(given_snapshot, given_policy)


@few
@given(worlds())
def test_removals_are_planned_the_same(given_snapshot: Snapshot):
    wide = policy(scale_down_utilization_threshold=1.0, max_drain_parallelism=5)
    long_ago = dict.fromkeys(given_snapshot.view.nodes, NOON - timedelta(days=1))
    known = ScaleDownState(unneeded_since=long_ago)
    read = read_snapshot(again(encode_snapshot(given_snapshot)))
    assert planned(read, wide, read_state(again(encode_state(known)))) == planned(given_snapshot, wide, known)


@few
@given(worlds())
def test_savings_are_planned_the_same(given_snapshot: Snapshot):
    saving = policy(consolidation="balanced", consolidation_budget=["100%"])
    read = read_snapshot(again(encode_snapshot(given_snapshot)))
    assert planned(read, saving) == planned(given_snapshot, saving)
    assert b'"savingsPerHour"' in planned(read, saving)


def seen(view: ClusterView) -> Any:
    """Everything in a view, in order."""
    homes = [
        (
            state.node,
            [(key, placed_pod.pod) for key, placed_pod in state.pods.items()],
            state.unreadable_pods,
            state.problem,
        )
        for state in view.nodes.values()
    ]
    storage = view.storage
    held = [list(objects.items()) for objects in (storage.volumes, storage.claims, storage.classes, storage.csi_nodes)]
    return homes, held, {**view.namespaces}, sorted(state.name for state in view.anti_affine_nodes)


@few
@given(clusters())
def test_whatever_is_in_a_cluster_comes_back(view: ClusterView):
    read = read_snapshot(again(encode_snapshot(Snapshot(number=1, at=NOON, view=view))))
    assert seen(read.view) == seen(view)


def everything() -> Snapshot:
    """Every field of a snapshot is set to something else than its default."""
    bad = BadObject(kind="Pod", problem="spec: odd", namespace="default", name="odd", node_name="n1")
    made = snapshot([node("n1"), node("n2")], pods=[pod("a", on="n1")], groups=[group("g", size=2)])
    view = made.view
    n1 = view.nodes["n1"].with_pods([PlacedPod(pod("a", on="n1")).rename("other")]).with_unreadable(bad)
    kind = MachineType(
        name="m",
        capacity=ResourceVector({"cpu": 4000, "nvidia.com/gpu": 1}),
        allocatable=ResourceVector({"cpu": 3900}),
        price_per_hour=0.1,
        zones=("z1",),
        labels={"a": "b"},
        architecture="arm64",
    )
    entry = PendingPods(
        key="default/p", pod=pod("p", on=""), count=2, created=NOON, bundle="default/r", names=("p", "q")
    )
    return replace(
        made,
        number=7,
        view=view.with_states([n1]),
        pending=(entry,),
        machine_types=(kind,),
        budgets=(budget(allowed=1, app="x"),),
        creation_backoffs={("m", "z1", ""): "in backoff"},
    )


def test_every_field_of_a_snapshot_comes_back():
    one = everything()
    read = read_snapshot(again(encode_snapshot(one)))
    assert replace(read, view=one.view) == one
    assert seen(read.view) == seen(one.view)


def test_every_field_of_a_group_comes_back():
    whole = NodeGroup(
        id="g",
        min_size=1,
        max_size=9,
        target_size=2,
        template=node("t"),
        daemons=(pod("d"),),
        daemons_are_known=True,
        price_per_hour=0.5,
        machine_type="m",
        zone="z",
        autoprovisioned=True,
        autoscaled=False,
        zero_or_max=True,
        not_usable="in backoff",
        capacity_type=CapacityType.SPOT,
        shrinking=GroupScaleDownOptions(
            utilization_threshold=0.7,
            gpu_utilization_threshold=0.6,
            unneeded_time_s=60.0,
            unready_time_s=90.0,
            ignore_daemon_sets=True,
        ),
    )
    one = replace(everything(), groups=(whole,))
    assert read_snapshot(again(encode_snapshot(one))).groups == (whole,)


def test_every_part_of_a_policy_comes_back():
    one = replace(
        policy(nodes=["0:3:a:b"], gpu_total=["nvidia.com/gpu:0:8"], scan_interval="1m"),
        overlay={"m": Overlay(price=2.0), "k": Overlay(factor=0.5)},
        priorities={10: (".*",), -1: ("a", "b")},
        naming=Naming(underscores=False, longest=63),
        expander_answers={"q": ("a",)},
    )
    assert read_policy(again(encode_policy(one))) == one
    assert read_policy(again(encode_policy(policy()))) == policy()


@settings(max_examples=60, deadline=None)
@given(
    times=st.dictionaries(st.sampled_from(["n1", "n2", "n3"]), st.integers(0, 10**6), max_size=3),
    names=st.frozensets(st.sampled_from(["n1", "n2"])),
    numbers=st.tuples(st.integers(0, 9), st.integers(0, 9)),
    deletions=st.none() | st.dictionaries(st.sampled_from(["g", "h"]), st.integers(0, 9)),
)
def test_what_is_remembered_comes_back(times: Any, names: frozenset[str], numbers: Any, deletions: Any):
    moments = {name: NOON - timedelta(seconds=seconds) for name, seconds in times.items()}
    one = ScaleDownState(
        unneeded_since=moments,
        unremovable_until=moments,
        controllers={("default", "ReplicaSet", "rs"): ControllerInfo(exists=False, replicas=numbers[0])},
        hints={PodKey("default", "p"): "n1"},
        postponed=tuple(sorted(names)),
        being_deleted=names,
        unready=names,
        booked=names,
        deletions=deletions,
        removals_under_way=numbers[0],
        drains_under_way=numbers[1],
    )
    assert read_state(again(encode_state(one))) == one


# ---- the file


def made(salt: str | None = "pepper") -> bytes:
    one = replace(everything(), pending=())
    return write_recording(build_recording(one, policy(), ScaleDownState(), about=ABOUT, salt=salt))


@pytest.mark.parametrize("salt", [None, "pepper"])
def test_a_file_gives_the_plan_that_is_in_it(salt: str | None):
    recording = read_recording(made(salt))
    assert is_same(recording.get_part("plan"), encode_result(replay_recording(recording)))
    assert recording.anonymised is (salt is not None)


def test_the_same_cluster_gives_the_same_bytes():
    assert made() == made()
    assert made() != made("salt")


def test_a_plan_that_differs_is_shown_with_the_place():
    recording = read_recording(made(None))
    before = recording.get_part("plan")
    now = json.loads(json.dumps(before))
    now["scaleUp"]["helped"] = 5
    now["reasons"]["notDone"].append({"what": "x"})
    assert not is_same(before, now)
    assert [path for path, _, _ in find_differences(before, now)] == ["plan.reasons.notDone[2]", "plan.scaleUp.helped"]
    assert list(find_differences(before, before)) == []


def test_what_is_missing_on_one_side_is_reported():
    assert list(find_differences({"a": 1}, {"b": [2]})) == [
        ("plan.a", "1", "(nothing)"),
        ("plan.b", "(nothing)", "[2]"),
    ]


@pytest.mark.parametrize("part", ["snapshot", "policy", "known"])
@pytest.mark.parametrize("odd", [None, [], 3])
def test_a_part_that_is_none_is_named(part: str, odd: Any):
    with pytest.raises(UnreadableRecording, match=part):
        replay_recording(read_recording(made()).with_part(part, odd))


DAMAGED = {
    "snapshot": {"number": "x"},
    "policy": {"flags": {"max-cpu": "many"}},
    "known": {"hints": [{}]},
}


@pytest.mark.parametrize("part", DAMAGED)
def test_a_damaged_part_is_named(part: str):
    recording = read_recording(made())
    damaged = recording.with_part(part, {**recording.get_part(part), **DAMAGED[part]})  # type: ignore[dict-item]
    with pytest.raises(UnreadableRecording, match=part):
        replay_recording(damaged)


def test_a_snapshot_of_a_newer_plimsoll_is_refused(reviewed: ReviewedSentences):
    recording = read_recording(made())
    newer = {**recording.get_part("snapshot"), "version": 2}
    with pytest.raises(RecordingTooNew) as raised:
        replay_recording(recording.with_part("snapshot", newer))
    reviewed(str(raised.value))
