"""From a TidbClusterAutoScaler to the body of `POST /autoscaling` (docs/design/tidb.md 3.2)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.objects.api.tidb import TidbCluster, TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import convert_object
from plimsoll.tidb.model.components import make_group_name
from plimsoll.tidb.planning.api.defaults import apply_defaults
from plimsoll.tidb.planning.reconcile.planner_request import build_strategy
from plimsoll.tidb.wire.strategy import read_strategies, write_strategy
from tests.cli.tidb.tidb_commands import autoscaler, cluster
from tests.tidb.planning.planner.builders import TIDB, TIKV

RULE = {"max_threshold": 0.8, "min_threshold": 0.2}
TYPES = {
    "storage_small": {"cpu": "1000m", "memory": "2Gi", "storage": "10Gi", "count": 3},
    "default_homogeneous_tikv": {"count": 9, "cpu": "64"},
}


def asked(component: Any, spec: dict[str, Any], **more: Any) -> Any:
    base = convert_object(TidbCluster, cluster())
    given = convert_object(TidbClusterAutoScaler, autoscaler(**spec))
    assert isinstance(base, TidbCluster)
    assert isinstance(given, TidbClusterAutoScaler)
    before = json.dumps(spec)
    found = build_strategy(component, effective=apply_defaults(given, base), base=base, node_count=5, **more)
    assert json.dumps(spec) == before
    assert read_strategies(write_strategy(found)) == (found,)
    return json.loads(write_strategy(found))


def test_the_body_has_the_cluster_itself_in_every_rule_sized_by_its_requests():
    types = ["default_homogeneous_tikv", "storage_small"]
    spec = {"tikv": {"resources": TYPES, "rules": {"cpu": RULE, "storage": RULE}}}
    assert asked(TIKV, spec) == {
        "rules": [
            {
                "component": "tikv",
                "cpu_rule": {**RULE, "resource_types": types},
                "storage_rule": {**RULE, "resource_types": types},
            }
        ],
        "resources": [
            {
                "resource_type": "default_homogeneous_tikv",
                "cpu": 4000,
                "memory": 17179869184,
                "storage": 107374182400,
                "count": 9,
            },
            {
                "resource_type": "storage_small",
                "cpu": 1000,
                "memory": 2147483648,
                "storage": 10737418240,
                "count": 3,
            },
        ],
        "node_count": 5,
    }


def test_what_is_absent_is_left_out():
    found = asked(TIDB, {"tidb": {"rules": {"cpu": RULE}}})
    assert found["rules"][0].keys() == {"component", "cpu_rule"}
    assert [resource.keys() for resource in found["resources"]] == [{"resource_type", "cpu", "memory"}] * 2
    assert [resource["resource_type"] for resource in found["resources"]] == [
        "default_homogeneous_tidb",
        "default_tidb",
    ]


def test_instances_on_their_way_and_changed_sizes_are_reported():
    spec = {"tikv": {"resources": TYPES, "rules": {"cpu": RULE}}}
    found = asked(TIKV, spec, pending={"storage_small": 2}, suffixes={"storage_small": "0123abcd"})
    assert found["pending"] == {"storage_small": 2}
    assert found["resources"][1]["group_suffix"] == "0123abcd"


@pytest.mark.parametrize("written", ["1", "1000m", 1, 1.0, "1e0", "999.5m"])
def test_quantities_are_read_as_kubernetes_reads_them_and_rounded_up(written: Any):
    spec = {"tidb": {"resources": {"t": {"cpu": written, "memory": "1.5"}}, "rules": {"cpu": RULE}}}
    found = asked(TIDB, spec)["resources"][1]
    assert (found["cpu"], found["memory"]) == (1000, 2)


def test_a_group_name_stays_a_label_value():
    assert make_group_name(TIKV, "storage_small") == "pd-auto-scaling-tikv-storage_small"
    long = make_group_name(TIKV, "x" * 42, "0123abcd")
    assert (len(long), long.endswith("x-0123abcd")) == (63, True)
    assert len(make_group_name(TIDB, "x" * 42)) == 63
