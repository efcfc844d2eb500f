"""Options as people write them, and what becomes of them (docs/design/nodes.md 5.1 and 10)."""

from typing import Any

import pytest

from plimsoll.nodes.config.flags import Bounds, InvalidOptions, State
from plimsoll.nodes.config.options import FLAGS, find_flags_without_effect, read_options
from plimsoll.nodes.config.policy import Planner, Policy
from tests.golden.reviewed_sentences import ReviewedSentences

GIB = 1 << 30


def problems(**options: Any):
    with pytest.raises(InvalidOptions) as caught:
        read_options({name.replace("_", "-"): value for name, value in options.items()})
    return dict(caught.value.problems)


def test_no_options_are_the_defaults():
    assert read_options({}) == Policy()


@pytest.mark.parametrize(
    ("name", "default"),
    [
        ("scan-interval", 10.0),
        ("max-nodes-total", 0),
        ("scale-down-unneeded-time", 600.0),
        ("scale-down-unready-time", 1200.0),
        ("expendable-pods-priority-cutoff", -10),
        ("max-node-group-backoff-duration", 1800.0),
        ("node-info-cache-expire-time", 315_360_000.0),
        ("autoprovisioning-prefix", "nodeautoprovisioning"),
        ("max-node-groups", 50),
        ("max-autoprovisioned-node-group-count", 15),
        ("autoprovisioned-group-max-size", 0),
        ("nap-taints", "custom"),
        ("check-capacity-provisioning-request-max-batch-size", 1000),
        ("plan-time-limit", 0.7),
        ("consolidation", "empty"),
    ],
)
def test_defaults_are_those_of_the_specification(name: str, default: Any):
    assert FLAGS[name].default == default


def test_flags_that_do_nothing_here_are_accepted_and_reported():
    given = {"estimator": "binpacking", "max-binpacking-time": "5m", "scan-interval": "10s"}
    assert read_options(given) == Policy()
    reported = find_flags_without_effect(given)
    assert [flag.name for flag in reported] == ["estimator", "max-binpacking-time"]
    assert all(flag.note for flag in FLAGS.values() if flag.state is State.ACCEPTED)


@pytest.mark.parametrize("value", ["1m30s", "90s", "0.025h", "90000ms", "1.5m"])
def test_durations_are_written_as_in_go(value: Any):
    assert read_options({"scan-interval": value}).operation.scan_interval_s == pytest.approx(90.0)


@pytest.mark.parametrize("value", [10, "10", "10x", "", "-5s", True, [], "1e3s", "5m "])
def test_what_is_no_duration_is_refused(value: Any):
    assert "options.scan-interval" in problems(scan_interval=value)


def test_zero_needs_no_unit():
    assert read_options({"scale-down-unneeded-time": 0}).scale_down.unneeded_time_s == 0


@pytest.mark.parametrize(("value", "meant"), [(True, True), ("true", True), ("1", True), (0, False), ("F", False)])
def test_switches(value: Any, meant: bool):
    assert read_options({"node-autoprovisioning": value}).nap.enabled is meant


@pytest.mark.parametrize(
    "name",
    [
        "node-autoprovisioning",
        "node-autoprovisioning-enabled",
        "enable-node-autoprovisioning",
        "--node-autoprovisioning",
    ],
)
def test_every_spelling_of_auto_provisioning(name: str):
    assert read_options({name: "true"}).nap.enabled


def test_two_spellings_of_one_option_must_agree(reviewed: ReviewedSentences):
    assert read_options({"cloud-provider": "fake", "provider": "kwok"}).operation.provider == "simulated"
    found = problems(cloud_provider="externalgrpc", provider="clusterapi")
    reviewed(found["options.provider"])


def test_lists_are_a_text_or_a_list():
    assert read_options({"machine-types": "a, b"}).nap.machine_types == ("a", "b")
    assert read_options({"machine-types": ["a", "b"]}).nap.machine_types == ("a", "b")
    assert read_options({"nodes": "0:2:as"}).groups.list_explicit_bounds() == {"as": Bounds(0, 2)}
    assert read_options({"nodes": ["0:2:as", "1:3:arn:b"]}).groups.list_explicit_bounds() == {
        "as": Bounds(0, 2),
        "arn:b": Bounds(1, 3),
    }


def test_limits_come_in_both_spellings_and_are_counted_in_millicores_and_bytes():
    seed = read_options({"min-cpu": 1, "max-cpu": "80", "max-memory": 70}).limits.list_bounds()
    assert seed == {"cpu": Bounds(1000, 80_000), "memory": Bounds(0, 70 * GIB)}
    shipped = read_options({"cores-total": "1:80", "memory-total": "0:70"}).limits.list_bounds()
    assert shipped == seed
    assert read_options({"gpu-total": "nvidia.com/gpu:0:8"}).limits.list_bounds() == {"nvidia.com/gpu": Bounds(0, 8)}


def test_nothing_is_limited_by_default():
    assert read_options({}).limits.list_bounds() == {}


def test_max_cpu_and_cores_total_must_be_equal_if_both_are_given():
    assert read_options({"max-cpu": 80, "cores-total": "0:80"}).limits.list_bounds()["cpu"].most == 80_000
    found = problems(max_cpu=80, cores_total="0:90")
    assert found == {"options.max-cpu": "is 80, but cores-total says 90; give one of them, or the same"}


@pytest.mark.parametrize(
    "options", [{"min-cpu": 9, "max-cpu": 8}, {"cores-total": "9:8"}, {"nodes": "3:2:a"}, {"gpu-total": "x:3:2"}]
)
def test_a_minimum_above_the_maximum_is_refused(options: dict[str, Any]):
    with pytest.raises(InvalidOptions, match="above"):
        read_options(options)


def test_every_mistake_is_reported_at_once_with_the_nearest_name(reviewed: ReviewedSentences):
    found = problems(max_cpus=5, scan_interval=10, planner="best", nodes=["a", "0:1:g"], plan_gap="x", zzz=1)
    reviewed(found["options.max-cpus"])
    assert found["options.zzz"] == "unknown option"
    assert set(found) == {
        "options.max-cpus",
        "options.scan-interval",
        "options.planner",
        "options.nodes",
        "options.plan-gap",
        "options.zzz",
    }


def test_mistakes_between_options_are_reported_beside_mistakes_in_them():
    assert set(problems(min_cpu=9, max_cpu=8, scan_interval="x")) == {"options.min-cpu", "options.scan-interval"}


def test_a_null_is_an_option_not_given():
    assert read_options({"max-cpu": None}) == Policy()


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1 << 80, "9" * 40, {"a": 1}, None, -1, 1.5])
def test_odd_values_never_raise_anything_but_a_complaint(value: Any):
    for name in FLAGS:
        try:
            read_options({name: value})
        except InvalidOptions as error:
            assert name in str(error)  # noqa: PT017 - some flags take some of them; those that do not must say so


# ---- who plans


def choosing(**options: Any):
    return read_options({name.replace("_", "-"): value for name, value in options.items()}).planning


def test_cost_is_the_expander_where_prices_are_known_and_least_waste_elsewhere():
    assert choosing().choose_expanders(prices_are_known=True) == ("cost",)
    assert choosing().choose_expanders(prices_are_known=False) == ("least-waste",)


def test_the_optimal_planner_goes_with_cost():
    assert choosing().choose_planner(prices_are_known=True) is Planner.OPTIMAL
    assert choosing().choose_planner(prices_are_known=False) is Planner.COMPATIBLE
    assert choosing(expander="priority,cost").choose_planner(prices_are_known=False) is Planner.OPTIMAL
    assert choosing(expander="priority").choose_planner(prices_are_known=True) is Planner.COMPATIBLE
    assert choosing(planner="compatible").choose_planner(prices_are_known=True) is Planner.COMPATIBLE


def test_asking_for_the_optimal_planner_is_asking_for_cost():
    assert choosing(planner="optimal").choose_expanders(prices_are_known=False) == ("cost",)


def test_the_optimal_planner_refuses_other_expanders(reviewed: ReviewedSentences):
    assert choosing(planner="optimal", expander="priority,cost").planner == "optimal"
    for expander in ("least-waste", "cost,priority", "random"):
        reviewed(problems(planner="optimal", expander=expander)["options.planner"])


def test_only_the_compatible_planner_limits_nodes_per_scale_up_unasked():
    limits = read_options({}).limits
    assert limits.get_nodes_per_scaleup(Planner.OPTIMAL) == 0
    assert limits.get_nodes_per_scaleup(Planner.COMPATIBLE) == 1000
    given = read_options({"max-nodes-per-scaleup": 7}).limits
    assert given.get_nodes_per_scaleup(Planner.OPTIMAL) == given.get_nodes_per_scaleup(Planner.COMPATIBLE) == 7


def test_tiers_of_a_drain_are_read_before_anything_is_drained():
    assert read_options({"drain-priority-config": "0:30,1000:600"}).scale_down.drain_priority_config == "0:30,1000:600"
    assert "PRIORITY:SECONDS" in problems(drain_priority_config="high")["options.drain-priority-config"]
