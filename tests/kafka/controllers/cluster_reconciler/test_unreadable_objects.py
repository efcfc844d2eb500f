"""Objects that cannot be decoded: a condition on them names the field, nothing is changed, the rest goes on.

The definitions are without schemas: an object may be older than the definition that would refuse it.
"""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.core.plans import Ref
from plimsoll.journal.entries import Query
from plimsoll.kafka.settings import KafkaSettings
from tests.kafka.controllers.operator_bench import API, OperatorBench
from tests.kafka.controllers.test_bad_input import OPEN_DEFINITIONS, list_messages
from tests.kafka.controllers.test_k11_k31_automatic_rebalancing import ADD, REMOVE, make_settings, scale_up
from tests.objects.crds.kafka_definitions import NAMESPACE

KAFKA = f"{API}/kafkas/c"
POOLS = f"{API}/kafkanodepools"


def list_journal(bench: OperatorBench, kind: str, name: str) -> list[str]:
    """The codes of what was not done, by the journal."""
    about = Ref(kind=kind, namespace=NAMESPACE, name=name)
    entries = bench.run.run_until(bench.journal.list_entries(Query(ref=about)))
    plans = [entry.filter_by_ref(about).plan for entry in entries]
    return [not_done.reason.code for plan in plans for not_done in plan.not_done]


# ---- a Kafka


@pytest.mark.parametrize(
    ("patch", "field"),
    [
        ({"spec": "none"}, "spec: "),
        ({"spec": {"kafka": []}}, "spec.kafka: "),
        ({"spec": {"kafka": {"replicas": "three"}}}, "spec.kafka.replicas: "),
        ({"spec": {"kafka": {"template": {"pod": {}, "x": 1}, "version": 4}}}, "spec.kafka.version: "),
        ({"spec": {"cruiseControl": True}}, "spec.cruiseControl: "),
    ],
    ids=["text", "list", "number", "version", "cruise-control"],
)
def test_a_kafka_that_cannot_be_decoded_names_the_field_and_goes_on_when_it_is_mended(
    patch: dict[str, Any], field: str
):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        scale_up(bench)
        spec, view, pods = bench.kafka["spec"], bench.view, bench.live
        bench.patch(KAFKA, patch)
        bench.step()
        assert bench.conditions["NotReady"] == ["UnreadableObject"]
        assert f"kafka/kafka/c cannot be decoded: {field}" in list_messages(bench)
        assert bench.status_of_kafka["observedGeneration"] == bench.kafka["metadata"]["generation"]
        assert (bench.view, bench.live) == (view, pods), "an operation that runs is not forgotten"
        assert "UnreadableObject" in list_journal(bench, "kafka", "c")
        version = bench.kafka["metadata"]["resourceVersion"]
        bench.run.advance_by(60)
        bench.step()
        assert bench.kafka["metadata"]["resourceVersion"] == version, "it is written once"
        bench.ask("PATCH", KAFKA, [{"op": "replace", "path": "/spec", "value": spec}], content=JSON_PATCH)
        assert bench.run_to_the_end()[-1] == "Ready"
        assert bench.conditions == {"Ready": [""]}
        assert bench.count_replicas(3) > 0


JSON_PATCH = "application/json-patch+json"


@pytest.mark.parametrize(
    ("status", "field"),
    [
        ({"registeredNodeIds": "0"}, "status.registeredNodeIds: "),
        ({"cruiseControl": {"autoRebalance": {"add-brokers": [3, "4"]}}}, "autoRebalance.add-brokers[1]: "),
    ],
    ids=["ids", "view"],
)
def test_a_status_that_cannot_be_decoded_is_named_and_keeps_the_warnings(status: dict[str, Any], field: str):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster(modes=None)
        bench.scale(2)
        bench.step()
        bench.patch(f"{KAFKA}/status", {"status": status})
        bench.step()
        assert bench.conditions == {"NotReady": ["UnreadableObject"], "Warning": ["ScaleDownPreventionCheck"]}
        assert field in list_messages(bench)
        assert len(bench.live) == 3


def test_a_dry_run_writes_no_condition_on_a_kafka_that_cannot_be_decoded():
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        bench.patch(KAFKA, {"spec": {"kafka": []}})
        before = bench.kafka
        bench.settings = KafkaSettings(dry_run=True)
        bench.start_operator()
        bench.step()
        assert bench.kafka == before
        assert "UnreadableObject" in list_journal(bench, "kafka", "c")


def test_a_rebalance_of_a_kafka_that_cannot_be_decoded_goes_on_when_it_is_mended():
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        scale_up(bench)
        bench.run_rebalances()
        bench.run_rebalances()
        assert bench.rebalance_state(ADD) == "Rebalancing"
        version = bench.kafka["spec"]["kafka"]["version"]
        bench.patch(KAFKA, {"spec": {"kafka": {"version": 4}}})
        bench.step()
        bench.run_rebalances()
        assert bench.rebalance_state(ADD) == "Rebalancing", "its execution goes on"
        warnings = [found for found in bench.rebalances[ADD]["status"]["conditions"] if found["type"] == "Warning"]
        assert [found["reason"] for found in warnings] == ["UnreadableObject"]
        assert "kafka/kafka/c cannot be decoded: spec.kafka.version: " in warnings[0]["message"]
        bench.patch(KAFKA, {"spec": {"kafka": {"version": version}}})
        assert bench.run_to_the_end()[-1] == "Ready"
        assert [sent for sent in bench.sent if "dryrun=false" in sent] == ["add_broker dryrun=false brokerid=3"]


# ---- a node pool


def test_a_pool_that_cannot_be_decoded_has_a_condition_and_so_has_its_kafka():
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster(pools=("p", "q"))
        pods = bench.live
        bench.patch(f"{POOLS}/q", {"spec": {"replicas": "two"}})
        bench.patch(f"{POOLS}/p", {"spec": {"replicas": 2}})
        bench.step()
        message = "kafkanodepool/kafka/q cannot be decoded: spec.replicas: "
        assert bench.conditions["NotReady"] == ["UnreadableObject"]
        assert message in list_messages(bench)
        (condition,) = bench.read_pool("q")["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("NotReady", "UnreadableObject")
        assert message in condition["message"]
        assert bench.read_pool("q")["status"]["nodeIds"] == [10, 11, 12]
        assert bench.live == pods
        assert "UnreadableObject" in list_journal(bench, "kafkanodepool", "q")
        before = bench.read_pool("q")
        bench.run.advance_by(60)
        bench.step(2)
        assert bench.read_pool("q") == before, "it is written once"
        bench.patch(f"{POOLS}/q", {"spec": {"replicas": 3}})
        bench.patch(f"{POOLS}/p", {"spec": {"replicas": 3}})
        bench.step()
        assert "conditions" not in bench.read_pool("q")["status"]
        assert bench.conditions == {"Ready": [""]}


@pytest.mark.parametrize("cluster", ["c", ""], ids=["kafka-missing", "no-label"])
def test_a_pool_without_a_kafka_that_cannot_be_decoded_has_a_condition_and_can_be_deleted(cluster: str):
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_pool()
        metadata = {"labels": {"strimzi.io/cluster": cluster or None}, "finalizers": ["plimsoll.io/node-pool"]}
        bench.patch(f"{POOLS}/p", {"metadata": metadata, "spec": {"roles": "broker"}})
        bench.run.run_until(bench.parts.clusters.run(NAMESPACE, ""))
        (condition,) = bench.read_pool()["status"]["conditions"]
        assert (condition["type"], condition["reason"]) == ("NotReady", "UnreadableObject")
        assert "spec.roles: " in condition["message"]
        bench.delete(f"{POOLS}/p")
        bench.run.run_until(bench.parts.clusters.run(NAMESPACE, cluster))
        assert bench.read_pool() == {}


# ---- rebalances and settings


def test_a_kafka_names_its_automatic_rebalance_that_cannot_be_decoded():
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        scale_up(bench)
        bench.run_rebalances()
        bench.patch(f"{API}/kafkarebalances/{ADD}/status", {"status": {"sessionId": 7}})
        bench.step()
        bench.run_rebalances()
        assert bench.conditions["NotReady"] == ["UnreadableObject"]
        message = f"kafkarebalance/kafka/{ADD} cannot be decoded: status.sessionId: "
        assert message in list_messages(bench)
        conditions = bench.rebalances[ADD]["status"]["conditions"]
        assert [found["reason"] for found in conditions if message in found["message"]] == ["UnreadableObject"]
        bench.patch(f"{API}/kafkarebalances/{ADD}/status", {"status": {"sessionId": None}})
        assert bench.run_to_the_end()[-1] == "Ready"


def test_automatic_rebalances_that_cannot_be_decoded_go_with_their_kafka():
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        bench.make_cluster()
        scale_up(bench)
        bench.patch(f"{API}/kafkarebalances/{ADD}/status", {"status": {"sessionId": 7}})
        bench.delete(KAFKA)
        bench.step()
        assert ADD not in bench.rebalances
        assert REMOVE not in bench.rebalances


def test_a_template_that_cannot_be_decoded_is_invalid():
    with OperatorBench(definitions=OPEN_DEFINITIONS) as bench:
        make_settings(bench, kind="KafkaRebalance")
        bench.patch(f"{API}/kafkarebalances/s/status", {"status": {"sessionId": 7}})
        bench.make_cluster(modes=[{"mode": "add-brokers", "template": {"name": "s"}}])
        assert bench.conditions == {"Ready": [""], "Warning": ["AutoRebalanceSettingsInvalid"]}
        assert "kafkarebalance/kafka/s: cannot be decoded: status.sessionId: " in list_messages(bench)
        scale_up(bench)
        assert (bench.state, bench.lists) == ("NotReady", ([3], []))
