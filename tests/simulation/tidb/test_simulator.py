"""A simulation over a curve: what it decides, what it measures, what it sums up."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.local.tidb.load.curves import Load
from plimsoll.objects.api.tidb import AutoResource
from plimsoll.simulation.tidb.simulated_sets import Delays
from plimsoll.simulation.tidb.simulator import MOST_STEPS, ComponentSimulation, list_simulated_components, simulate
from plimsoll.simulation.tidb.summary import summarise
from plimsoll.tidb.model.components import Component
from tests.simulation.tidb.builders import SMALL, curve, run_of, scaled, setting, steadily

if TYPE_CHECKING:
    from plimsoll.simulation.tidb.simulator import SimulationInput
    from tests.golden.reviewed_sentences import ReviewedSentences

QUIET = Load(tikv_cores=2, tidb_cores=2)
BUSY = Load(tikv_cores=10.8, tidb_cores=7)
HOT = Load(tikv_cores=6, hot_instances=1, hot_share=0.6)


def played(run: SimulationInput, component: Component = Component.TIKV) -> ComponentSimulation:
    return simulate(run, component)


def done(simulated: ComponentSimulation) -> list[tuple[str, str]]:
    return [(decision.kind, decision.what) for decision in simulated.decisions if not decision.is_held]


def test_a_quiet_cluster_is_left_alone() -> None:
    simulated = played(run_of(steadily(QUIET), tikv=scaled()))
    assert simulated.decisions == ()
    assert {sample.instances for sample in simulated.samples} == {3}


def test_t01_busy_stores_make_the_cluster_grow() -> None:
    simulated = played(run_of(steadily(BUSY), tikv=scaled()))
    assert done(simulated) == [("base", "3 → 6")]
    assert simulated.samples[-1].average_usage == pytest.approx(10.8 / 24)


def test_a_hot_store_is_relieved_by_a_group() -> None:
    simulated = played(run_of(steadily(HOT), tikv=scaled()))
    assert done(simulated) == [("small", "new group of 2")]
    assert simulated.samples[0].highest_usage == pytest.approx(0.9)
    assert simulated.samples[-1].highest_usage == pytest.approx(0.5)


def test_instances_work_after_they_started() -> None:
    run = run_of(steadily(BUSY), tikv=scaled(), delays=Delays(start_s=300))
    usage = {sample.at_s: sample.average_usage for sample in played(run).samples}
    assert usage[270] == pytest.approx(0.9)
    assert usage[300] == pytest.approx(0.45)


def test_instances_are_paid_from_the_moment_they_are_asked_for() -> None:
    first, *_ = played(run_of(steadily(BUSY), tikv=scaled())).samples
    assert (first.cores, first.sizes) == (24, {"base": 6})


def test_a_group_goes_one_store_at_a_time_when_nothing_is_hot_any_more() -> None:
    day = curve((0, HOT), (1800, HOT), (1801, QUIET), (7200, QUIET))
    simulated = played(run_of(day, tikv=scaled()))
    assert done(simulated)[0] == ("small", "new group of 2")
    sizes = [sample.sizes.get("small", 0) for sample in simulated.samples]
    assert list(dict.fromkeys(sizes)) == [2, 1, 0]
    assert done(simulated)[-1] == ("small", "group removed")


def test_a_store_leaves_after_it_was_emptied() -> None:
    day = curve((0, HOT), (1800, HOT), (1801, QUIET), (7200, QUIET))
    decisions = played(run_of(day, tikv=scaled(), delays=Delays(drain_s=600))).decisions
    begun = next(decision.at_s for decision in decisions if decision.what == "one of 2 is being emptied")
    gone = next(decision.at_s for decision in decisions if decision.what == "2 → 1")
    assert gone - begun == 600


def test_cool_downs_are_kept() -> None:
    day = curve((0, HOT), (1800, HOT), (1801, QUIET), (20_000, QUIET))
    simulated = played(run_of(day, tikv=scaled(intervals=(300, 2000)), delays=Delays(drain_s=0)))
    changes = [decision.at_s for decision in simulated.decisions if decision.added < 0]
    assert len(changes) == 2
    assert changes[1] - changes[0] >= 2000


def test_full_disks_make_stores_and_nothing_takes_them_away() -> None:
    day = curve((0, Load(storage_gib=200)), (3600, Load(storage_gib=260)), (7200, Load()))
    simulated = played(run_of(day, tikv=scaled(cpu=None, storage=(0.8, 0.6))))
    assert done(simulated) == [("base", "3 → 4")]
    assert simulated.samples[-1].sizes == {"base": 4}


def test_nodes_are_a_limit() -> None:
    simulated = played(run_of(steadily(BUSY), tikv=scaled(), nodes=4))
    assert done(simulated) == [("base", "3 → 4")]


def test_what_is_not_done_is_reported_once() -> None:
    types = {"small": SMALL, "default_homogeneous_tikv": AutoResource(count=6)}
    busier = Load(tikv_cores=23)
    simulated = played(
        run_of(curve((0, BUSY), (60, busier), (900, busier)), tikv=scaled(types=types, intervals=(600, 0)))
    )
    assert len({(decision.kind, decision.what) for decision in simulated.decisions}) == len(simulated.decisions)


def test_equal_inputs_give_equal_outcomes() -> None:
    day = curve((0, QUIET), (3600, HOT), (7200, BUSY), (9000, QUIET))
    assert played(run_of(day, tikv=scaled())) == played(run_of(day, tikv=scaled()))


def test_tidb_servers_of_a_group_are_removed_at_once() -> None:
    hot = Load(tidb_cores=4, hot_instances=1, hot_share=0.9)
    day = curve((0, hot), (1800, hot), (1801, Load(tidb_cores=0.5)), (7200, Load(tidb_cores=0.5)))
    run = run_of(day, tidb=scaled(types={"small": AutoResource(cpu="2", memory="4Gi", count=1)}), is_tidb_skewed=True)
    simulated = played(run, Component.TIDB)
    assert done(simulated) == [("small", "new group of 1"), ("small", "group removed")]


def test_hot_keys_are_no_matter_of_tidb() -> None:
    hot = Load(tidb_cores=4, hot_instances=1, hot_share=0.9)
    assert done(played(run_of(steadily(hot), tidb=scaled()), Component.TIDB)) == []


# ---- what cannot be played


def test_a_curve_without_time_is_refused(reviewed: ReviewedSentences) -> None:
    with pytest.raises(InvalidInput) as refused:
        played(run_of(curve((0, QUIET)), tikv=scaled()))
    reviewed(str(refused.value))


def test_far_too_many_passes_are_refused() -> None:
    with pytest.raises(InvalidInput, match=f"more than {MOST_STEPS}"):
        played(run_of(steadily(QUIET, hours=1_000_000), tikv=scaled()))


def test_only_components_with_rules_are_played() -> None:
    assert list_simulated_components(setting(tikv=scaled())) == (Component.TIKV,)
    assert list_simulated_components(setting(tikv=scaled(), tidb=scaled())) == (Component.TIDB, Component.TIKV)


# ---- sums


def test_sums_of_an_hour() -> None:
    run = run_of(steadily(BUSY), tikv=scaled())
    summary = summarise(played(run), run, price_per_core_hour=0.5)
    assert (summary.fewest_instances, summary.peak_instances) == (6, 6)
    assert (summary.instance_hours, summary.core_hours, summary.cost) == pytest.approx((6, 24, 12))
    assert (summary.scale_outs, summary.scale_ins) == (1, 0)
    assert summary.above_max_s == 60


def test_the_fixed_size_keeps_the_peak_at_the_threshold() -> None:
    run = run_of(curve((0, QUIET), (3600, BUSY)), tikv=scaled())
    fixed = summarise(played(run), run, price_per_core_hour=None).fixed
    assert fixed.instances == 4  # 10.8 cores of work at 0.8 are 13.5 cores
    assert fixed.core_hours == pytest.approx(16)
    assert fixed.cost is None


def test_the_fixed_size_holds_the_data_too() -> None:
    run = run_of(steadily(Load(storage_gib=500)), tikv=scaled(storage=(0.8, 0.6)))
    assert summarise(played(run), run, price_per_core_hour=None).fixed.instances == 7


def test_work_beyond_all_cores_is_not_served() -> None:
    run = run_of(steadily(Load(tikv_cores=14)), tikv=scaled(), nodes=3)
    summary = summarise(played(run), run, price_per_core_hour=None)
    assert summary.unserved_core_hours == pytest.approx(2)
    assert summary.above_max_s == 3600
