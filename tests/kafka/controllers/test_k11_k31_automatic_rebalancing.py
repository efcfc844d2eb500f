"""K11 to K23: settings, several changes at once, failures and users, through the Kubernetes API, with our engine."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.reporting.cluster_reporter import list_events
from tests.kafka.controllers.operator_bench import API, BOTH_MODES, MB, OperatorBench
from tests.objects.crds.kafka_definitions import NAMESPACE, list_our_definitions, list_strimzi_definitions

if TYPE_CHECKING:
    from collections.abc import Callable

pytestmark = pytest.mark.usefixtures("engine")

ADD = "c-auto-rebalancing-add-brokers"
REMOVE = "c-auto-rebalancing-remove-brokers"
LIVE = {"New", "PendingProposal", "ProposalReady", "Rebalancing"}
SETTINGS = {
    "goals": ["ReplicaCapacityGoal", "RackAwareGoal"],
    "skipHardGoalCheck": True,
    "replicationThrottle": 1_000_000,
}


def make_settings(bench: OperatorBench, *, kind: str = "KafkaRebalanceSettings", name: str = "s") -> None:
    plural = "kafkarebalancesettings" if kind == "KafkaRebalanceSettings" else "kafkarebalances"
    annotations = {"strimzi.io/rebalance-template": "true"} if kind == "KafkaRebalance" else {}
    body = {
        "apiVersion": "kafka.strimzi.io/v1",
        "kind": kind,
        "metadata": {"name": name, "annotations": annotations},
        "spec": SETTINGS,
    }
    bench.made(f"{API}/{plural}", body)


def scale_up(bench: OperatorBench, replicas: int = 4) -> None:
    """The new brokers are ready, and their rebalance exists."""
    before = len(bench.pool_ids())
    bench.scale(replicas)
    bench.step()
    bench.make_ready(*range(before, replicas))
    bench.step()


def get_live(bench: OperatorBench) -> list[str]:
    return [name for name in bench.rebalances if bench.rebalance_state(name) in LIVE]


@pytest.mark.parametrize("reference", [{"settings": "s"}, {"settings": {"name": "s"}}, {"template": {"name": "s"}}])
def test_k11_settings_are_copied(reference: dict[str, Any]):
    with OperatorBench() as bench:
        make_settings(bench, kind="KafkaRebalance" if "template" in reference else "KafkaRebalanceSettings")
        bench.make_cluster(modes=[{"mode": "add-brokers", **reference}])
        scale_up(bench)
        assert bench.rebalances[ADD]["spec"] == {"mode": "add-brokers", "brokers": [3], **SETTINGS}
        assert bench.rebalances[ADD]["metadata"]["annotations"] == {"strimzi.io/rebalance-auto-approval": "true"}


@pytest.mark.parametrize("engine", ["plimsoll"], indirect=True)  # recorded answers move whatever the goals are
def test_a_scale_up_that_moves_nothing_says_so():
    with OperatorBench() as bench:
        make_settings(bench)
        bench.make_cluster(modes=[{"mode": "add-brokers", "settings": "s"}])
        assert bench.count_replicas(0) > 0
        scale_up(bench)
        events = []
        for _ in range(20):
            bench.run_rebalances()
            result = bench.step()
            events += [] if result is None else list(list_events(result))
        assert bench.count_replicas(3) == 0, "the goals of the settings are met without a move"
        (ended,) = [
            (type_.value, message) for type_, code, message in events if code == "AutoRebalanceBrokersStayEmpty"
        ]
        assert ended[0] == "Warning"
        assert ended[1].startswith("no replica moves onto broker 3: the cluster is already balanced")
        assert not any("have moved" in message for _, _, message in events)


def test_k12_missing_settings_are_waited_for():
    with OperatorBench() as bench:
        bench.make_cluster(modes=[{"mode": "add-brokers", "settings": "s"}])
        assert bench.conditions == {"Ready": [""], "Warning": ["AutoRebalanceSettingsNotFound"]}, "before it scales"
        scale_up(bench)
        assert bench.rebalances == {}
        assert (bench.state, bench.lists) == ("NotReady", ([3], []))
        assert bench.conditions == {"Ready": [""], "Warning": ["AutoRebalanceSettingsNotFound"]}
        make_settings(bench)
        bench.step()
        assert bench.rebalances[ADD]["spec"]["goals"] == SETTINGS["goals"]
        assert bench.conditions == {"Ready": [""]}


def test_k13_settings_that_change_late_have_no_effect():
    with OperatorBench() as bench:
        make_settings(bench)
        bench.make_cluster(modes=[{"mode": "add-brokers", "settings": "s"}])
        scale_up(bench)
        bench.patch(f"{API}/kafkarebalancesettings/s", {"spec": {"goals": ["DiskCapacityGoal"]}})
        before = bench.rebalances[ADD]["spec"]
        bench.step(2)
        assert bench.rebalances[ADD]["spec"] == before


def test_k14_one_mode_only():
    with OperatorBench() as bench:
        bench.make_cluster(modes=[{"mode": "remove-brokers"}])
        scale_up(bench)
        assert len(bench.live) == 4
        assert (bench.rebalances, bench.view) == ({}, {})
        assert bench.conditions == {"Ready": [""]}
    with OperatorBench() as bench:
        bench.make_cluster(modes=[{"mode": "add-brokers"}])
        bench.scale(2)
        bench.step()
        assert len(bench.live) == 3
        assert bench.rebalances == {}
        assert bench.conditions == {"Ready": [""], "Warning": ["ScaleDownPreventionCheck"]}


def test_k15_both_directions_at_once():
    with OperatorBench() as bench:
        bench.make_cluster(pools=("a", "b"))
        bench.brokers.create_topic("other", [[10, 11, 12]] * 6, size_bytes=1_000_000)
        bench.scale(4, "a")
        bench.scale(2, "b")
        bench.step()
        bench.make_all_ready()
        bench.step()
        assert list(bench.rebalances) == [REMOVE]
        assert bench.rebalances[REMOVE]["spec"]["brokers"] == [12]
        assert bench.lists == ([3], [12])
        seen: list[str] = []
        for _ in range(200):
            bench.step()
            bench.run_rebalances()
            bench.run.advance_by(5)
            assert len(get_live(bench)) <= 1
            seen += [name for name in bench.rebalances if name not in seen]
            if bench.state == "Ready" and not bench.rebalances and bench.lists == ([], []):
                break
        assert seen == [REMOVE, ADD]
        assert bench.pool_ids("b") == [10, 11]
        assert bench.count_replicas(12) == 0
        assert bench.count_replicas(3) > 0


def test_k16_a_scale_up_grows_while_it_runs():
    with OperatorBench() as bench:
        bench.make_cluster(partitions=60)
        scale_up(bench)
        bench.run_rebalances()
        bench.step()
        bench.run_rebalances()
        bench.step()
        assert bench.state == "Rebalancing"
        bench.sent.clear()
        scale_up(bench, 5)
        assert bench.rebalances[ADD]["spec"]["brokers"] == [3, 4]
        bench.run_rebalances()
        assert bench.sent[:2] == ["stop_proposal_execution", "add_broker dryrun=true brokerid=3,4"]
        bench.run_to_the_end()
        assert min(bench.count_replicas(3), bench.count_replicas(4)) > 20


def test_k17_a_removal_beats_a_running_scale_up():
    with OperatorBench() as bench:
        bench.make_cluster(pools=("p", "b"), partitions=60)
        bench.brokers.create_topic("other", [[10, 11, 12]] * 6, size_bytes=1_000_000)
        scale_up(bench)
        bench.run_rebalances()
        bench.step()
        bench.run_rebalances()
        bench.step()
        assert bench.rebalance_state(ADD) == "Rebalancing"
        bench.sent.clear()
        bench.scale(2, "b")
        for _ in range(200):
            bench.step()
            assert len(get_live(bench)) <= 1
            bench.run_rebalances()
            assert len(get_live(bench)) <= 1
            bench.run.advance_by(5)
            if bench.state == "Ready" and not bench.rebalances and bench.lists == ([], []):
                break
        requests = [sent for sent in bench.sent if sent.startswith(("stop", "remove", "add"))]
        assert requests[0] == "stop_proposal_execution"
        first_removal = next(index for index, sent in enumerate(requests) if sent.startswith("remove_broker"))
        assert all(not sent.startswith("add_broker") for sent in requests[:first_removal])
        assert any(sent.startswith("add_broker dryrun=false") for sent in requests[first_removal:])
        assert bench.pool_ids("b") == [10, 11]


def test_k18_a_broker_that_is_added_and_removed_again_is_not_queued():
    with OperatorBench() as bench:
        bench.make_cluster(partitions=60)
        scale_up(bench)
        bench.run_rebalances()
        bench.step()
        bench.run_rebalances()
        bench.scale(3)
        bench.run_to_the_end()
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.lists == ([], [])
        bench.step(3)
        assert bench.rebalances == {}


def test_k19_a_failed_proposal_waits_for_the_user():
    with OperatorBench() as bench:
        bench.make_cluster()
        scale_up(bench)
        bench.spoil_proposals()
        bench.run_rebalances()
        bench.step()
        assert (bench.state, bench.lists) == ("NotReady", ([3], []))
        assert bench.rebalance_state(ADD) == "NotReady"
        [condition] = bench.rebalances[ADD]["status"]["conditions"]
        assert "RackAwareGoal" in condition["message"]
        bench.mend_proposals()
        bench.step(3)
        bench.run_rebalances()
        assert bench.rebalance_state(ADD) == "NotReady", "not by itself"
        bench.annotate("kafkarebalances", ADD, rebalance="refresh")
        bench.run_rebalances()
        assert "strimzi.io/rebalance" not in bench.rebalances[ADD]["metadata"]["annotations"]
        assert bench.run_to_the_end()[-1] == "Ready"


@pytest.mark.parametrize("definitions", [list_our_definitions, list_strimzi_definitions])
def test_k20_deleting_the_rebalance_cancels_the_scale_up(definitions: Callable[[], list[dict[str, Any]]]):
    with OperatorBench(definitions=definitions()) as bench:
        bench.make_cluster()
        scale_up(bench)
        bench.spoil_proposals()
        bench.run_rebalances()
        bench.step()
        bench.delete(f"{API}/kafkarebalances/{ADD}")
        for _ in range(5):
            bench.run_rebalances()
            bench.step()
        assert bench.rebalances == {}
        assert (bench.state, bench.lists) == ("", ([], []))
        assert len(bench.live) == 4


def test_k21_a_failed_removal_is_tried_again():
    with OperatorBench() as bench:
        bench.make_cluster()
        scale_up(bench)
        bench.run_to_the_end()
        bench.spoil_proposals()
        bench.scale(3)
        bench.step()
        bench.run_rebalances()
        bench.step()
        assert (bench.state, bench.lists) == ("NotReady", ([], [3]))
        assert len(bench.live) == 4
        bench.mend_proposals()
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]


def test_k21_a_removal_whose_execution_failed_is_tried_again():
    with OperatorBench() as bench:
        bench.make_cluster(brokers=4)
        bench.brokers.slow_broker(0, MB)
        bench.scale(3)
        for _ in range(3):
            bench.step()
            bench.run_rebalances()
        assert bench.rebalance_state(REMOVE) == "Rebalancing"
        bench.stop_with_another_client()
        bench.run.advance_by(15)
        bench.run_rebalances()
        bench.step()
        assert (bench.state, bench.lists) == ("NotReady", ([], [3]))
        assert bench.conditions == {"Ready": [""], "Warning": ["AutoRebalanceRetryScheduled"]}
        assert len(bench.live) == 4
        states = bench.run_to_the_end()
        assert states[0] == "NotReady"
        assert [state for state in states if state in {"PendingProposal", "ProposalReady", "Rebalancing"}]
        assert states[-1] == "Ready"
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        assert bench.count_replicas(3) == 0


@pytest.mark.parametrize("engine", ["plimsoll"], indirect=True)
def test_k21_where_strimzis_definitions_prune_the_status_a_removal_is_tried_again_with_growing_waits():
    with OperatorBench(definitions=list_strimzi_definitions()) as bench:
        bench.make_cluster(brokers=4)
        bench.spoil_proposals()
        bench.scale(3)
        tried: list[int] = []
        for second in range(0, 240, 15):
            bench.step()
            before = len(bench.sent)
            bench.run_rebalances()
            tried += [second] * (len(bench.sent) - before)
            bench.run.advance_by(15)
        waits = [later - earlier for earlier, later in pairwise(tried)]
        assert len(waits) == 2
        assert 30 <= waits[0] < waits[1]
        assert len(bench.live) == 4
        bench.mend_proposals()
        bench.run.advance_by(240)
        for _ in range(6):
            bench.step()
            bench.run_rebalances()
            bench.run.advance_by(15)
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]
        assert bench.rebalances == {}


def test_k23_stop_holds_the_removal():
    with OperatorBench() as bench:
        bench.make_cluster(partitions=60)
        scale_up(bench)
        bench.run_to_the_end()
        bench.scale(3)
        bench.step()
        bench.run_rebalances()
        bench.step()
        bench.run_rebalances()
        bench.annotate("kafkarebalances", REMOVE, rebalance="stop")
        bench.run_rebalances()
        bench.step(3)
        assert bench.rebalance_state(REMOVE) == "Stopped"
        assert bench.state == "Stopped"
        assert bench.conditions == {"Ready": [""], "Warning": ["AutoRebalanceStopped"]}
        assert len(bench.live) == 4
        bench.annotate("kafkarebalances", REMOVE, rebalance="refresh")
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.live == ["c-p-0", "c-p-1", "c-p-2"]


def test_k31_replicas_without_node_pools():
    with OperatorBench() as bench:
        bench.make_cluster(replicas=3, version="v1beta2")
        assert bench.live == ["c-kafka-0", "c-kafka-1", "c-kafka-2"]
        bench.patch(f"{API}/kafkas/c", {"spec": {"kafka": {"replicas": 4}}})
        bench.step()
        assert (bench.state, bench.lists) == ("ScalingUp", ([3], []))
        bench.make_ready(3, pool="kafka")
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.count_replicas(3) >= 20
        bench.patch(f"{API}/kafkas/c", {"spec": {"kafka": {"replicas": 3}}})
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.live == ["c-kafka-0", "c-kafka-1", "c-kafka-2"]
        v1beta2 = bench.ask("GET", f"/apis/kafka.strimzi.io/v1beta2/namespaces/{NAMESPACE}/kafkas/c").body
        assert v1beta2["spec"]["kafka"]["replicas"] == 3


def test_a_removal_that_is_withdrawn_stops_and_fills_the_broker_again():
    with OperatorBench() as bench:
        bench.make_cluster(partitions=60)
        scale_up(bench)
        bench.run_to_the_end()
        bench.scale(3)
        bench.step()
        bench.run_rebalances()
        bench.step()
        bench.run_rebalances()
        assert bench.rebalance_state(REMOVE) == "Rebalancing"
        bench.scale(4)
        assert bench.run_to_the_end()[-1] == "Ready"
        assert len(bench.live) == 4
        assert bench.count_replicas(3) > 20


def test_turning_the_feature_off_ends_what_runs():
    with OperatorBench() as bench:
        bench.make_cluster(partitions=60)
        scale_up(bench)
        bench.run_rebalances()
        bench.step()
        bench.run_rebalances()
        bench.patch(f"{API}/kafkas/c", {"spec": {"cruiseControl": {"autoRebalance": None}}})
        for _ in range(20):
            bench.step()
            bench.run_rebalances()
            bench.run.advance_by(5)
        assert bench.rebalances == {}
        assert (bench.view, bench.shipped) == ({}, {})
        assert bench.conditions == {"Ready": [""]}


def test_silent_brokers_remove_no_pod():
    with OperatorBench() as bench:
        bench.make_cluster(modes=BOTH_MODES)
        bench.kill()  # nothing starts the brokers again
        for broker in (0, 1, 2):
            bench.brokers.kill_broker(broker)
        bench.run.advance_by(60)
        before = bench.live
        bench.scale(2)
        bench.step(3)
        assert bench.live == before
        assert bench.pool_ids() == [0, 1, 2]
        assert bench.conditions == {"NotReady": ["KafkaUnavailable"]}
