"""Acceptance scenarios T01 to T13 of the specification through `plimsoll tidb plan`.

T12, series of another cluster in the same Prometheus, is a matter of what fills the snapshot.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.cli.runner import plimsoll
from tests.cli.tidb.tidb_commands import plans, reasons, run_plan
from tests.tidb.planning.planner.builders import (
    BIG,
    GB,
    SMALL,
    base,
    disks,
    group_of,
    instance,
    snapshot,
    strategy,
    thresholds,
)

if TYPE_CHECKING:
    from pathlib import Path

HIGH = base(0.9, 0.9, 0.9)
PARTLY_HIGH = base(0.95, 0.3, 0.3)


def short(found: list[dict[str, Any]]) -> dict[str, int]:
    return {entry["resource_type"]: entry["count"] for entry in found}


def test_t01_average_high(tmp_path: Path):
    ended = run_plan(tmp_path, strategy(SMALL), snapshot(*HIGH))
    assert plans(ended) == [
        {"component": "tikv", "count": 6, "resource_type": "default_homogeneous_tikv", "labels": {}}
    ]


def test_t02_homogeneous_limit(tmp_path: Path):
    assert short(plans(run_plan(tmp_path, strategy(limit=4), snapshot(*HIGH)))) == {"default_homogeneous_tikv": 4}
    ended = run_plan(tmp_path, strategy(limit=3), snapshot(*HIGH))
    assert (ended.returncode, ended.stdout) == (0, "[]\n")
    assert reasons(ended) == ["homogeneous_limit"]


def test_t02_groups_grow_instead_if_that_is_asked_for(tmp_path: Path):
    """4.4.1: need 4.8 cores above the target, 1 for each instance of 2 cores, and no more than 4 of them."""
    asked = (strategy(SMALL, limit=3), snapshot(*HIGH))
    assert short(plans(run_plan(tmp_path, *asked))) == {}
    ended = run_plan(tmp_path, *asked, "--fallback-heterogeneous")
    assert short(plans(ended)) == {"small": 4}
    assert reasons(ended) == ["homogeneous_limit", "heterogeneous_out"]


def test_t02_what_the_cluster_itself_may_get_it_gets_first(tmp_path: Path):
    ended = run_plan(tmp_path, strategy(SMALL, limit=4), snapshot(*HIGH), "--fallback-heterogeneous")
    assert short(plans(ended)) == {"default_homogeneous_tikv": 4}


def test_t03_partial_high_two_types(tmp_path: Path):
    found = plans(run_plan(tmp_path, strategy(BIG, SMALL), snapshot(*PARTLY_HIGH)))
    labels = {"group": "pd-auto-scaling-tikv-big", "resource-type": "big", "specialUse": "hotRegion"}
    assert found == [{"component": "tikv", "count": 1, "resource_type": "big", "labels": labels}]


def test_t03_groups_of_tidb_have_no_special_use(tmp_path: Path):
    found = plans(run_plan(tmp_path, strategy(BIG, component="tidb"), snapshot(*PARTLY_HIGH, component="tidb")))
    labels = {"group": "pd-auto-scaling-tidb-big", "resource-type": "big"}
    assert found == [{"component": "tidb", "count": 1, "resource_type": "big", "labels": labels}]


def test_t04_equal_hot_instances_both_count(tmp_path: Path):
    assert short(plans(run_plan(tmp_path, strategy(SMALL), snapshot(*base(0.9, 0.9, 0.2, 0.2))))) == {"small": 4}


@pytest.mark.parametrize(("nodes", "expected"), [(8, {"big": 1, "small": 2}), (20, {"big": 1, "small": 10}), (5, {})])
def test_t05_spill_to_next_type_and_node_shortage(tmp_path: Path, nodes: int, expected: dict[str, int]):
    hot = base(0.95, 0.95, 0.3, 0.3, 0.3, quota=16)
    asked = strategy(BIG, {**SMALL, "count": 10}, nodes=nodes)
    assert short(plans(run_plan(tmp_path, asked, snapshot(*hot)))) == expected


def test_t06_existing_group_total(tmp_path: Path):
    seen = snapshot(*PARTLY_HIGH, *group_of("small", 0.85))
    assert short(plans(run_plan(tmp_path, strategy(SMALL), seen))) == {"small": 4}


@pytest.mark.parametrize(
    ("bigs", "smalls", "expected"),
    [(1, 2, {"big": 1, "small": 1}), (1, 1, {"big": 1}), (1, 0, {})],
    ids=["two small", "one small", "only big"],
)
def test_t07_all_low(tmp_path: Path, bigs: int, smalls: int, expected: dict[str, int]):
    groups = [*group_of("big", *[0.1] * bigs, quota=8), *group_of("small", *[0.02] * smalls)]
    ended = run_plan(tmp_path, strategy(BIG, SMALL), snapshot(*base(0.1, 0.15, 0.05), *groups))
    assert short(plans(ended)) == expected


def test_t08_threshold_edges(tmp_path: Path):
    high = run_plan(tmp_path, strategy(SMALL), snapshot(*base(0.8, 0.8, 0.8)))
    assert (plans(high), reasons(high)) == ([], ["steady"])
    low = run_plan(tmp_path, strategy(SMALL), snapshot(*base(0.2, 0.2, 0.2), *group_of("small", 0.2)))
    assert (short(plans(low)), reasons(low)) == ({"small": 1}, ["steady"])


def test_t09_storage(tmp_path: Path):
    assert short(plans(run_plan(tmp_path, strategy(storage=thresholds()), snapshot(*disks(270))))) == {
        "default_homogeneous_tikv": 6
    }
    assert plans(run_plan(tmp_path, strategy(storage=thresholds()), snapshot(*disks(240)))) == []


def test_t09_storage_goes_before_a_cpu_rule_that_is_high_too(tmp_path: Path):
    both = strategy(SMALL, storage=thresholds(), cpu=thresholds())
    busy = [{**disk, "cpu_used_seconds": 239.0} for disk in disks(270)]
    assert short(plans(run_plan(tmp_path, both, snapshot(*busy)))) == {"default_homogeneous_tikv": 6}


def test_t10_storage_evicts_groups(tmp_path: Path):
    group = [{**instance, "capacity_bytes": 10 * GB, "used_bytes": 5 * GB} for instance in group_of("small", 0.3, 0.3)]
    asked = strategy(SMALL, storage=thresholds(), nodes=5)
    ended = run_plan(tmp_path, asked, snapshot(*disks(240), *group))
    assert short(plans(ended)) == {"default_homogeneous_tikv": 5}
    assert reasons(ended) == ["homogeneous_out", "evicted_for_nodes"]


def test_t11_tiflash_and_foreign_groups(tmp_path: Path):
    tiflash = [instance(0.9, name=f"db-tiflash-{i}", base=False, engine="tiflash") for i in range(2)]
    labelled = [{**instance, "engine": None, "labels": {"engine": "tiflash"}} for instance in tiflash]
    cold = [instance(0.9, name=f"cold-tikv-{i}", base=False) for i in range(2)]
    for others in ([*tiflash, *cold], [*labelled, *cold]):
        ended = run_plan(tmp_path, strategy(), snapshot(*HIGH, *others))
        assert short(plans(ended)) == {"default_homogeneous_tikv": 8}


@pytest.mark.parametrize("state", ["Offline", "Tombstone"])
def test_t11_stores_that_leave_do_not_count(tmp_path: Path, state: str):
    gone = instance(None, quota=None, state=state, name="db-tikv-9")
    assert short(plans(run_plan(tmp_path, strategy(), snapshot(*HIGH, gone)))) == {"default_homogeneous_tikv": 6}


def test_t13_one_instance_without_quota_holds_back_the_removal(tmp_path: Path):
    seen = snapshot(instance(0.05, quota=None, name="db-tikv-0"), *base(0.05, 0.05), *group_of("small", 0.05))
    ended = run_plan(tmp_path, strategy(SMALL), seen)
    assert (short(plans(ended)), reasons(ended)) == ({"small": 1}, ["metrics_missing"])


def test_t13_two_of_three_without_metrics_are_not_enough(tmp_path: Path):
    silent = [instance(None, quota=None, name=f"db-tikv-{i}") for i in (1, 2)]
    ended = run_plan(tmp_path, strategy(SMALL), snapshot(*base(0.05), *silent))
    assert (ended.returncode, ended.stdout) == (3, "")
    assert json.loads(ended.stderr)["error"] == "insufficient_metrics"


# ---- bad input


def complaint(folder: Path, asked: Any, seen: Any) -> tuple[str, str]:
    ended = run_plan(folder, asked, seen)
    assert (ended.returncode, ended.stdout) == (2, "")
    reported = json.loads(ended.stderr)
    assert list(reported) == ["error", "detail"]
    return reported["error"], reported["detail"]


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"rules": [],}', '{"rules": NaN}', "<html>", '{"rules": []}', "[" * 5000],
    ids=["empty", "broken", "list", "null", "trailing comma", "NaN", "HTML", "no rules", "deep"],
)
def test_what_is_no_strategy_is_bad_input(tmp_path: Path, text: str):
    error, detail = complaint(tmp_path, text, snapshot(*HIGH))
    assert error == "bad_strategy"
    assert detail.startswith(str(tmp_path / "strategy.json"))


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"cpu": thresholds(1.0)}, "rules[0].cpu_rule"),
        ({"cpu": thresholds(0.5, 0.5)}, "rules[0].cpu_rule"),
        ({"cpu": {"min_threshold": 0.1}}, "rules[0].cpu_rule.max_threshold"),
        ({"cpu": thresholds(resource_types=["nope"])}, "rules[0].cpu_rule.resource_types"),
        ({"nodes": -1}, "node_count"),
        ({"component": "pd"}, "rules[0].component"),
    ],
)
def test_a_strategy_that_makes_no_sense_names_the_field(tmp_path: Path, changed: dict[str, Any], field: str):
    error, detail = complaint(tmp_path, strategy(SMALL, **changed), snapshot(*HIGH))
    assert error == "bad_strategy"
    assert field in detail


@pytest.mark.parametrize(
    ("changed", "field"),
    [
        ({"cpu_used_seconds": "216"}, "cpu_used_seconds"),
        ({"cpu_quota_cores": -4}, "cpu_quota_cores"),
        ({"name": None}, "name"),
        ({"labels": {"group": 1}}, "labels"),
    ],
)
def test_a_snapshot_that_makes_no_sense_names_the_field(tmp_path: Path, changed: dict[str, Any], field: str):
    error, detail = complaint(tmp_path, strategy(), snapshot({**instance(), **changed}))
    assert error == "bad_snapshot"
    assert field in detail


def test_a_strategy_without_rules_for_the_snapshot_is_bad_input(tmp_path: Path):
    error, detail = complaint(tmp_path, strategy(component="tidb"), snapshot(*HIGH))
    assert (error, detail.endswith("none is for tikv")) == ("bad_strategy", True)


def test_a_group_without_a_type_is_bad_input(tmp_path: Path):
    odd = instance(0.1, base=False, labels={"group": "pd-auto-scaling-tikv-x"})
    assert complaint(tmp_path, strategy(), snapshot(*HIGH, odd))[0] == "missing_resource_type"


def test_a_file_that_is_not_there_is_bad_input(tmp_path: Path):
    words = ["--strategy", tmp_path / "strategy.json", "--snapshot", tmp_path / "none.json"]
    ended = plimsoll("tidb", "plan", *words)  # type: ignore[arg-type]
    assert (ended.returncode, json.loads(ended.stderr)["error"]) == (2, "bad_snapshot")


def test_null_equals_absent(tmp_path: Path):
    nulls = {"storage_rule": None}
    asked = strategy(SMALL)
    asked["rules"][0] |= nulls
    asked["resources"][1]["count"] = None
    seen = snapshot(*({**instance, "store_id": None, "engine": None, "used_bytes": None} for instance in HIGH))
    assert short(plans(run_plan(tmp_path, asked, seen))) == {"default_homogeneous_tikv": 6}
