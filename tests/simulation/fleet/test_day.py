"""Days whose numbers are known in advance, and the noisy day of the example."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import structs

from plimsoll.fleet.model.clusters import Locator
from plimsoll.simulation.fleet.day import Day
from plimsoll.simulation.fleet.demand import Request, draw_requests
from plimsoll.simulation.fleet.document import DayInput, read_day_document
from plimsoll.simulation.fleet.run import simulate_day
from tests.effort import share_of
from tests.simulation.fleet.day_documents import build_document, read_day, read_example

if TYPE_CHECKING:
    from plimsoll.simulation.fleet.outcome import DayOutcome

STANDARD = Locator("aws", "us-east-1", "standard")
HOUR_S = 3600.0


def play(day: DayInput, *requests: tuple[float, str, float], variant: int = 0) -> DayOutcome:
    """Requests by hour, size and hours of life."""
    drawn = tuple(
        Request(
            id=str(number),
            at=day.document.start + timedelta(hours=at),
            locator=STANDARD,
            size_id=size,
            lives_s=hours * HOUR_S,
        )
        for number, (at, size, hours) in enumerate(requests)
    )
    return Day(day.document, day.variants[variant], drawn).simulate()


def test_a_region_without_demand_keeps_one_cluster():
    outcome = play(read_day())
    assert (outcome.created, outcome.deleted, outcome.cluster_hours) == (1, 0, 24.0)
    assert outcome.node_hours == 24.0 * (3 + 3)


def test_a_request_waits_for_the_first_cluster():
    outcome = play(read_day(), (0.0, "x1", 1.0))
    assert (outcome.placed, outcome.waited, outcome.longest_wait_s) == (1, 1, 2400.0)


def test_a_request_gives_up_after_an_hour():
    outcome = play(read_day(provider={"creation": "90m", "setup": "0s"}), (0.0, "x1", 1.0))
    assert (outcome.placed, outcome.gave_up, outcome.waited) == (0, 1, 0)


def test_the_limit_of_the_region_refuses():
    outcome = play(read_day({"limit": 2}), (2.0, "x2", 9.0), (3.0, "x1", 9.0))
    assert (outcome.placed, outcome.refused) == (1, 1)


BURST = [(0.7, "x2", 1.0)] * 3
"""Right after the first cluster is ready: they fill it, and end an hour later."""


def test_a_full_cluster_gets_a_sibling_and_goes_when_it_is_not_needed():
    outcome = play(read_day(), *BURST)
    first, second = outcome.histories
    assert second.ready_at is not None
    assert second.ready_at - second.created_at == timedelta(minutes=40)
    assert (outcome.created, outcome.deleted, outcome.undone) == (2, 1, 1)
    assert first.deletion_at == first.created_at + timedelta(hours=1, minutes=42, seconds=30), "a period after the mark"
    assert first.gone_at == first.deletion_at + timedelta(minutes=15)
    assert second.deletion_at is None


def test_a_cool_down_keeps_what_was_just_made():
    day = read_day(variants=[{"name": "cool", "cool_down": "2h"}])
    outcome = play(day, *BURST, variant=1)
    assert (outcome.created, outcome.deleted, outcome.undone) == (2, 1, 0)
    first, second = outcome.histories
    assert first.deletion_at is not None
    assert second.ready_at is not None
    assert first.deletion_at >= second.ready_at + timedelta(hours=2)


def test_a_failed_creation_is_followed_by_another_and_paid_for_until_it_is_retired():
    day = read_day(provider={"failing_share": 1.0, "failure": "30m", "retired_after": "1h", "deletion": "15m"})
    outcome = play(day)
    assert outcome.created == outcome.failed
    assert 2 < outcome.created < 24 * 2, "the back-off and the cap hold"
    first = outcome.histories[0]
    assert first.gone_at == first.created_at + timedelta(minutes=105)
    assert outcome.undone == 0


def test_a_need_that_arises_at_the_mark_restores_the_cluster():
    """All Kafkas end, one of the two clusters is marked, and in the next period both are needed."""
    late = 1.7 + 30 / HOUR_S
    outcome = play(read_day(), *BURST, *[(late, "x2", 50.0)] * 3)
    assert (outcome.created, outcome.deleted, outcome.restored) == (2, 0, 1)


# ---- the noisy day


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, 1 + share_of(10)))
def test_with_a_cool_down_no_creation_is_undone_within_two_hours(seed: int):
    outcomes = {outcome.variant: outcome for outcome in simulate_day(read_example(seed=seed))}
    base, cooled = outcomes["as configured"], outcomes["cool-down 2h"]
    assert cooled.undone_share <= 0.01
    assert base.undone_share > 0.1, "without it the day is noisy"
    assert cooled.created < base.created
    assert outcomes["slack 6"].waited < outcomes["no slack"].waited
    assert outcomes["slack 6"].cluster_hours > outcomes["no slack"].cluster_hours
    for outcome in outcomes.values():
        assert outcome.requests == outcome.placed + outcome.refused + outcome.gave_up + outcome.waiting


def test_every_variant_gets_the_same_requests():
    day = read_example()
    assert draw_requests(day.document) == draw_requests(day.document)
    assert len({outcome.requests for outcome in simulate_day(_shorten(day))}) == 1


def _shorten(day: DayInput) -> DayInput:
    document = day.document.model_copy(update={"duration": 4 * HOUR_S})
    return DayInput(document=document, variants=day.variants[:3])


def test_the_rate_follows_the_hours():
    found = read_day_document(build_document(demand=[_build_demand(per_hour=200, swing=1.0, peak="14h")]))
    assert isinstance(found, DayInput)
    hours = [(request.at - found.document.start).total_seconds() / HOUR_S for request in draw_requests(found.document)]
    around_peak = sum(12 <= hour < 16 for hour in hours)
    around_trough = sum(hour < 4 for hour in hours)
    assert around_peak > 5 * around_trough > 0


def _build_demand(**changes: Any) -> dict[str, Any]:
    demand: dict[str, Any] = build_document()["demand"][0]
    return demand | changes


@pytest.mark.parametrize(
    ("change", "path"),
    [
        ({"demand": []}, "demand"),
        ({"demand": [_build_demand(region="moon")]}, "demand[0]"),
        ({"demand": [_build_demand(sizes={"x9": 1})]}, "demand[0].sizes.x9"),
        ({"demand": [_build_demand(per_hour=-1)]}, "demand[0].per_hour"),
        ({"demand": [_build_demand(lifetime="soon")]}, "demand[0].lifetime"),
        ({"provider": {"creation": "35m", "colour": "red"}}, "provider.colour"),
        ({"provider": {"failing_share": 2.0}}, "provider.failing_share"),
        ({"variants": [{"name": "as configured"}]}, "variants"),
        ({"variants": [{"name": "a", "slack": -1}]}, "variants[0].slack"),
        ({"configuration": {"providers": {"odd": 1}}}, "configuration.providers.odd"),
        ({"duration": "90d"}, "duration"),
    ],
)
def test_every_mistake_has_its_path(change: dict[str, Any], path: str):
    found = read_day_document(build_document() | change)
    assert isinstance(found, list)
    assert path in [mistake.path for mistake in found]


def test_a_change_of_the_slack_holds_for_all_types():
    day = read_day({"min_available_capacity_slack_streaming_units": 1}, variants=[{"name": "more", "slack": 4}])
    offers = [variant.policy.find_offer(STANDARD) for variant in day.variants]
    assert [offer.slack for offer in offers if offer is not None] == [1, 4]
    assert structs.replace(day.variants[0].policy, providers=()) == structs.replace(
        day.variants[1].policy, providers=()
    )
