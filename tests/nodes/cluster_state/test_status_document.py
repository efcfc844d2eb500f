"""The status ConfigMap has Cluster Autoscaler's keys, words and times (docs/design/nodes.md 11)."""

from datetime import timedelta
from typing import Any

import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.cluster_state.observed import ObservedCluster, ScaleUpError
from plimsoll.nodes.cluster_state.status_document import (
    LoopSummary,
    build_initializing_document,
    build_last_updated,
    build_status_document,
    format_status,
    read_status,
)
from tests.nodes.cluster_state.builders import NOON, STOCKOUT, at, group, instance, node, ready_nodes, state, world

COUNTS = {
    "registered": {
        "total": 5,
        "ready": 2,
        "notStarted": 1,
        "suspended": 1,
        "beingDeleted": 0,
        "unready": {"total": 1, "resourceUnready": 0},
    },
    "longUnregistered": 0,
    "unregistered": 1,
}
TIMES = {"lastProbeTime": "2026-01-01T12:00:00Z", "lastTransitionTime": "2026-01-01T12:00:00Z"}


def mixed():
    return world(
        8,
        *ready_nodes(2),
        node("bad", ready=False),
        node("young", ready=False, age_s=1),
        node("asleep", conditions={"Suspended": "True"}),
        waiting=(instance("new"),),
        min_size=2,
        max_size=12,
    )


def document(
    observed: Any = None, now_s: float = 0, turn: LoopSummary | None = None, before: Any = None
) -> dict[str, Any]:
    registry = state()
    registry.observe(observed or mixed(), at(now_s))
    return build_status_document(registry.assess_health(at(now_s)), turn or LoopSummary(), before)


def test_a_whole_document():
    assert document(turn=LoopSummary(candidates={"g": 2})) == {
        "time": "2026-01-01 12:00:00 +0000 UTC",
        "autoscalerStatus": "Running",
        "clusterWide": {
            "health": {"status": "Healthy", "nodeCounts": COUNTS, **TIMES},
            "scaleUp": {"status": "InProgress", **TIMES},
            "scaleDown": {"status": "CandidatesPresent", "candidates": 2, **TIMES},
        },
        "nodeGroups": [
            {
                "name": "g",
                "health": {
                    "status": "Healthy",
                    "nodeCounts": COUNTS,
                    "cloudProviderTarget": 8,
                    "minSize": 2,
                    "maxSize": 12,
                    **TIMES,
                },
                "scaleUp": {"status": "InProgress", **TIMES},
                "scaleDown": {"status": "CandidatesPresent", "candidates": 2, **TIMES},
            }
        ],
    }


def test_keys_come_in_the_order_people_know():
    lines = format_status(document()).splitlines()
    assert [line.split(":")[0] for line in lines if not line.startswith((" ", "-"))] == [
        "time",
        "autoscalerStatus",
        "clusterWide",
        "nodeGroups",
    ]


def test_the_text_reads_back_as_the_same_data_here_and_in_other_readers():
    written = document(turn=LoopSummary(message="all 'well': yes"))
    assert read_status(format_status(written)) == written
    assert yaml.safe_load(format_status(written)) == written


@settings(max_examples=100, deadline=None)
@given(message=st.text(max_size=40), name=st.text(min_size=1, max_size=12))
def test_whatever_a_cloud_says_and_however_groups_are_called_the_text_reads_back(message: str, name: str):
    registry = state()
    registry.observe(ObservedCluster(groups=(group(0, id=name),)), NOON)
    registry.register_failed_scale_up(name, ScaleUpError(code="no", message=message), NOON)
    written = build_status_document(registry.assess_health(NOON), LoopSummary(message=message))
    assert yaml.safe_load(format_status(written)) == written
    assert read_status(format_status(written)) == written


def test_a_cluster_without_groups_reads_back():
    written = document(ObservedCluster())
    assert yaml.safe_load(format_status(written)) == written == read_status(format_status(written))


def test_words_are_plain_and_times_are_quoted_as_people_know_it():
    text = format_status(document())
    assert "autoscalerStatus: Running\n" in text
    assert '    lastProbeTime: "2026-01-01T12:00:00Z"\n' in text
    assert "\n- name: g\n  health:\n    status: Healthy\n" in text


def test_a_quiet_cluster_shows_no_activity_and_no_candidates():
    quiet = document(world(2, *ready_nodes(2)))
    assert quiet["clusterWide"]["scaleUp"]["status"] == "NoActivity"
    assert quiet["clusterWide"]["scaleDown"]["status"] == "NoCandidates"
    assert quiet["nodeGroups"][0]["scaleUp"] == {"status": "NoActivity", **TIMES}


def test_a_group_in_backoff_shows_why():
    registry = state()
    registry.observe(world(2, *ready_nodes(2)), NOON)
    registry.register_failed_scale_up("g", STOCKOUT, NOON)
    (reported,) = build_status_document(registry.assess_health(NOON), LoopSummary())["nodeGroups"]
    assert reported["scaleUp"] == {
        "status": "Backoff",
        "backoffInfo": {"errorCode": "STOCKOUT", "errorMessage": "no more of these"},
        **TIMES,
    }


def test_an_unhealthy_group_is_shown_as_such():
    sick = document(world(9, *(node(f"u{n}", ready=False) for n in range(9))))
    assert sick["clusterWide"]["health"]["status"] == "Unhealthy"
    assert sick["nodeGroups"][0]["health"]["status"] == "Unhealthy"


def test_times_of_transitions_stay_while_the_status_stays_also_over_a_restart():
    first = document(world(2, *ready_nodes(2)))
    read_back = read_status(format_status(first))
    later = document(world(3, *ready_nodes(2)), now_s=60, before=read_back)
    health, scale_up = later["nodeGroups"][0]["health"], later["nodeGroups"][0]["scaleUp"]
    assert (health["lastProbeTime"], health["lastTransitionTime"]) == ("2026-01-01T12:01:00Z", "2026-01-01T12:00:00Z")
    assert (scale_up["status"], scale_up["lastTransitionTime"]) == ("InProgress", "2026-01-01T12:01:00Z")


def test_scale_down_is_dated_by_when_candidates_were_looked_for():
    looked = LoopSummary(looked_at=NOON - timedelta(seconds=30))
    assert document(turn=looked)["clusterWide"]["scaleDown"]["lastProbeTime"] == "2026-01-01T11:59:30Z"


def test_before_the_first_turn_only_the_head_is_there():
    assert build_initializing_document(NOON, "waiting for nodes") == {
        "time": "2026-01-01 12:00:00 +0000 UTC",
        "autoscalerStatus": "Initializing",
        "message": "waiting for nodes",
    }


def test_a_time_has_its_fraction_as_go_writes_it():
    moment = NOON + timedelta(microseconds=120_000)
    assert build_last_updated(moment) == {
        "cluster-autoscaler.kubernetes.io/last-updated": "2026-01-01 12:00:00.12 +0000 UTC"
    }


def test_what_another_writer_wrote_into_the_configmap_is_no_obstacle():
    assert read_status("{unclosed") is None
    assert read_status("just words") is None
    odd = {"clusterWide": [], "nodeGroups": {"a": 1}}
    assert document(before=odd)["clusterWide"]["health"]["lastTransitionTime"] == "2026-01-01T12:00:00Z"
    assert document(before={"nodeGroups": [3, {"name": 4}, {"name": "g", "health": "x"}]})["nodeGroups"]


def test_groups_that_are_not_autoscaled_are_not_listed():
    assert document(world(2, *ready_nodes(2), autoscaled=False))["nodeGroups"] == []
