"""Names of Strimzi's objects (docs/design/kafka.md section 5)."""

from __future__ import annotations

import pytest

from plimsoll.kafka.model.requests import Mode
from plimsoll.kafka.wire.names import (
    build_auto_rebalance_metadata,
    build_auto_rebalance_name,
    build_pod_name,
    read_node_id,
)


def test_automatic_rebalances_are_named_after_cluster_and_mode():
    assert build_auto_rebalance_name("c", Mode.ADD_BROKERS) == "c-auto-rebalancing-add-brokers"
    assert build_auto_rebalance_metadata("ns", "c", Mode.REMOVE_BROKERS) == {
        "namespace": "ns",
        "name": "c-auto-rebalancing-remove-brokers",
        "labels": {"strimzi.io/cluster": "c"},
        "annotations": {"strimzi.io/rebalance-auto-approval": "true"},
        "finalizers": ["strimzi.io/auto-rebalancing"],
    }


@pytest.mark.parametrize("node_id", [0, 7, 2147483647])
def test_a_pod_name_gives_its_node_id_back(node_id: int):
    assert read_node_id(build_pod_name("c", "p", node_id), "c", "p") == node_id


@pytest.mark.parametrize("name", ["c-p-03", "c-p-", "c-p", "c-p-x", "c-p--1", "c-q-1", "c-p-2147483648", "c-p-²"])
def test_other_names_have_no_node_id(name: str):
    assert read_node_id(name, "c", "p") is None
