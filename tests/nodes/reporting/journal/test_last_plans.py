"""The last plans in a ConfigMap: only what changed is written, a restart goes on, trouble is a value."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from plimsoll.core.plans import Reason, Ref
from plimsoll.journal.entries import Entry
from plimsoll.journal.last_plans import read_last_plans
from plimsoll.journal.last_plans_config_map import LastPlansWriter
from plimsoll.kube.errors import Forbidden
from plimsoll.nodes.permissions import LAST_PLANS_MAP
from plimsoll.nodes.reporting.journal.plan_entries import build_plan_and_outcomes
from plimsoll.nodes.reporting.reporter import Reporter
from tests.kube.embedded_api import EmbeddedApi
from tests.local.apiserver.builders import GUEST
from tests.nodes.planning.builders import policy
from tests.nodes.reporting.loop_results import loop_result, scale_down, unremovable, unschedulable_loop, waiting

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.loop_result import LoopResult

URL = f"/api/v1/namespaces/kube-system/configmaps/{LAST_PLANS_MAP}"
NAMESPACE = policy().operation.namespace
LIMIT = Reason(code="CpuResourceLimit", message="max cluster cpu limit reached")


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        yield world


def entry(one: LoopResult, number: int = 1) -> Entry:
    plan, outcomes = build_plan_and_outcomes(one)
    return Entry(number=number, plan=plan, outcomes=outcomes)


def stated(world: EmbeddedApi) -> dict[str, str]:
    plans = read_last_plans(world.ask("GET", URL)["data"])
    return {str(ref): str(plan.not_done[0].reason.code) for ref, plan in plans.items()}


def test_the_report_on_each_thing_is_found_there(world: EmbeddedApi):
    one = unschedulable_loop(
        waiting("p"), reasons=(LIMIT,), scale_down=scale_down(unremovable=(unremovable("n1", "BookedCapacity"),))
    )
    assert world.do(LastPlansWriter(world.client, LAST_PLANS_MAP).keep(entry(one), NAMESPACE)) is None

    assert stated(world) == {"pod/default/p": "NotTriggerScaleUp", "node/n1": "BookedCapacity"}


def test_a_restart_keeps_what_stood_there(world: EmbeddedApi):
    first, second = (
        loop_result(scale_down=scale_down(unremovable=(unremovable(name, "NotAutoscaled"),))) for name in ("n1", "n2")
    )
    world.do(LastPlansWriter(world.client, LAST_PLANS_MAP).keep(entry(first), NAMESPACE))
    world.do(LastPlansWriter(world.client, LAST_PLANS_MAP).keep(entry(second), NAMESPACE))

    assert stated(world).keys() == {"node/n1", "node/n2"}


def test_nothing_is_written_where_nothing_changed(world: EmbeddedApi):
    same = entry(loop_result(scale_down=scale_down(unremovable=(unremovable("n1", "NotAutoscaled"),))))
    writer = LastPlansWriter(world.client, LAST_PLANS_MAP, pause_s=0)
    world.do(writer.keep(same, NAMESPACE))
    before = world.ask("GET", URL)["metadata"]["resourceVersion"]
    world.do(writer.keep(same, NAMESPACE))

    assert world.ask("GET", URL)["metadata"]["resourceVersion"] == before


def test_it_never_grows_beyond_its_size(world: EmbeddedApi):
    writer = LastPlansWriter(world.client, LAST_PLANS_MAP, pause_s=0)
    for part in range(4):
        names = [f"node-{part}-{number}" for number in range(600)]
        one = loop_result(
            scale_down=scale_down(unremovable=tuple(unremovable(name, "NotAutoscaled") for name in names))
        )
        assert world.do(writer.keep(entry(one), NAMESPACE)) is None

    data = world.ask("GET", URL)["data"]
    assert sum(len(key) + len(value) for key, value in data.items()) <= 256 * 1024


def test_turns_that_follow_each_other_at_once_are_written_together_a_little_later(world: EmbeddedApi):
    writer = LastPlansWriter(world.client, LAST_PLANS_MAP)
    reporter = Reporter(last_plans=writer)
    turns = [
        loop_result(scale_down=scale_down(unremovable=(unremovable(name, "NotAutoscaled"),)))
        for name in ("n1", "n2", "n3")
    ]
    for number, loop in enumerate(turns):
        world.do(reporter.report(replace(loop, at=loop.at + timedelta(seconds=number))))
    assert stated(world).keys() == {"node/n1"}

    world.do(reporter.report(replace(turns[2], at=turns[2].at + timedelta(seconds=10))))

    assert stated(world).keys() == {"node/n1", "node/n2", "node/n3"}


def test_the_last_words_are_written_at_a_clean_end(world: EmbeddedApi):
    reporter = Reporter(last_plans=LastPlansWriter(world.client, LAST_PLANS_MAP))
    for name in ("n1", "n2"):
        world.do(reporter.report(loop_result(scale_down=scale_down(unremovable=(unremovable(name, "NotAutoscaled"),)))))
    world.do(reporter.close(policy()))

    assert stated(world).keys() == {"node/n1", "node/n2"}


def test_what_could_not_be_written_is_written_with_the_next(world: EmbeddedApi):
    one = loop_result(scale_down=scale_down(unremovable=(unremovable("n1", "NotAutoscaled"),)))
    writer = LastPlansWriter(world.new_client(token=GUEST), LAST_PLANS_MAP)
    world.do(writer.keep(entry(one), NAMESPACE))
    writer._client = world.client
    world.do(writer.catch_up(NAMESPACE, one.at + timedelta(seconds=10)))

    assert stated(world).keys() == {"node/n1"}


def test_a_refusal_is_a_value(world: EmbeddedApi):
    writer = LastPlansWriter(world.new_client(token=GUEST), LAST_PLANS_MAP)

    assert isinstance(world.do(writer.keep(entry(loop_result(ended_early=LIMIT)), NAMESPACE)), Forbidden)


def test_a_reporter_without_a_journal_keeps_them_all_the_same(world: EmbeddedApi):
    reporter = Reporter(last_plans=LastPlansWriter(world.client, LAST_PLANS_MAP))
    world.do(reporter.report(loop_result(scale_down=scale_down(unremovable=(unremovable("n1", "NotAutoscaled"),)))))

    assert Ref.parse("node/n1") in read_last_plans(world.ask("GET", URL)["data"])
