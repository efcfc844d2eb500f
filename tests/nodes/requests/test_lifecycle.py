"""Where requests stand, when they are tried again, and what time does to them."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.requests.lifecycle import (
    RequestDeletion,
    compute_deletion_time,
    compute_next_attempt_time,
    find_time_update,
    find_time_updates,
    select_due,
)
from plimsoll.nodes.requests.model import Phase, RequestView, StatusUpdate, UpdateKind
from plimsoll.nodes.requests.status import Details
from tests.narrowing import present
from tests.nodes.requests.listed_requests import (
    ATOMIC,
    CHECK,
    START,
    after,
    condition,
    request,
    seen,
    seen_one,
    template,
)

WEEK_S = 7 * 86_400
INTENT = '{"attempt":1,"groups":{"g":{"from":0,"to":2}}}'
ACCEPTED, PROVISIONED, FAILED = condition("Accepted"), condition("Provisioned"), condition("Failed")
REFUSED = condition("Provisioned", "False", "CapacityIsNotFound")


@pytest.mark.parametrize(
    ("conditions", "details", "at", "phase"),
    [
        ([], {}, 0, Phase.DUE),
        ([ACCEPTED], {}, 0, Phase.DUE),
        ([REFUSED], {}, 60, Phase.WAITING),
        ([REFUSED], {}, 61, Phase.DUE),
        ([REFUSED], {"attempts": "2"}, 120, Phase.WAITING),
        ([REFUSED], {"attempts": "2"}, 121, Phase.DUE),
        ([REFUSED], {"attempts": "1", "lastAttemptTime": "2026-01-01T00:01:00Z"}, 120, Phase.WAITING),
        ([condition("Provisioned", "False", "FailedToCheckCapacity")], {}, 61, Phase.DUE),
        ([condition("Provisioned", "False", "WaitingForNodes")], {}, 9999, Phase.ARRIVING),
        ([condition("Provisioned", "False", "WaitingForNodes")], {"intent": INTENT}, 1, Phase.INTENDED),
        ([condition("Provisioned", "Unknown")], {}, 9999, Phase.UNKNOWN),
        ([ACCEPTED], {"intent": INTENT}, 0, Phase.INTENDED),
        ([REFUSED], {"intent": INTENT}, 1, Phase.INTENDED),
        ([FAILED], {"intent": INTENT}, 1, Phase.INTENDED),
        ([PROVISIONED], {}, 600, Phase.HELD),
        ([PROVISIONED], {}, 601, Phase.OVER),
        ([PROVISIONED, condition("BookingExpired")], {}, 0, Phase.OVER),
        ([PROVISIONED, condition("CapacityRevoked")], {}, 0, Phase.OVER),
        ([REFUSED, FAILED], {}, 9999, Phase.OVER),
        ([REFUSED, condition("Failed", "False")], {}, 61, Phase.DUE),
    ],
)
def test_where_a_request_stands(conditions: Any, details: dict[str, str], at: float, phase: Phase):
    assert seen_one(request("r", ATOMIC, *conditions, details=details), at=at).phase is phase


class TestTryingAgain:
    def test_n04_the_wait_doubles_up_to_ten_minutes(self):
        waits = [
            present(compute_next_attempt_time(Details(attempts=n, last_attempt=START), read_options({}))) - START
            for n in range(1, 8)
        ]
        assert [wait.total_seconds() for wait in waits] == [60, 120, 240, 480, 600, 600, 600]

    def test_n04_attempts_of_turns_every_ten_seconds(self):
        policy = read_options({})
        details, tried = Details(), []
        for at in range(0, 1600, 10):
            due = compute_next_attempt_time(details, policy)
            if due is None or after(at) > due:
                tried.append(at)
                details = details.replace(attempts=details.attempts + 1, last_attempt=after(at))
        assert tried == [0, 70, 200, 450, 940, 1550]

    def test_flags_say_how_long(self):
        options = {
            "provisioning-request-initial-backoff-time": "5s",
            "provisioning-request-max-backoff-time": "7s",
        }
        waits = [
            compute_next_attempt_time(Details(attempts=n, last_attempt=START), read_options(options)) for n in (1, 2)
        ]
        assert waits == [after(5), after(7)]

    @given(attempts=st.integers(-(10**30), 10**30))
    def test_whatever_is_written_as_attempts_the_wait_has_its_bounds(self, attempts: int):
        due = present(compute_next_attempt_time(Details(attempts=attempts, last_attempt=START), read_options({})))
        assert timedelta(seconds=60) <= due - START <= timedelta(seconds=600)

    @given(first=st.integers(0, 2000), later=st.integers(0, 2000), attempts=st.integers(0, 9))
    def test_once_due_it_stays_due_until_it_is_tried(self, first: int, later: int, attempts: int):
        one = request("r", CHECK, REFUSED, details={"attempts": str(attempts)})
        early, late = sorted((first, later))
        if seen_one(one, at=early).phase is Phase.DUE:
            assert seen_one(one, at=late).phase is Phase.DUE


def refreshed_one(*conditions: Any, at: float, kind: str = CHECK, **more: Any) -> StatusUpdate | RequestDeletion | None:
    return find_time_update(seen_one(request("r", kind, *conditions, **more), at=at), after(at))


def reported(outcome: StatusUpdate | RequestDeletion | None) -> tuple[str, str, str] | None:
    """What is written of which condition."""
    if outcome is None:
        return None
    assert isinstance(outcome, StatusUpdate)
    last = outcome.conditions.all[-1]
    return last.type, last.status, last.reason


class TestTimeGoesBy:
    def test_a_request_without_capacity_in_time_has_failed(self):
        assert refreshed_one(REFUSED, at=WEEK_S) is None
        assert reported(refreshed_one(REFUSED, at=WEEK_S + 1)) == ("Failed", "True", "Expired")

    @pytest.mark.parametrize(("text", "until"), [("7200", 7200), ("2h", 7200), ("90s", 90), ("0", 0)])
    def test_n46_a_parameter_says_how_long(self, text: str, until: int):
        assert refreshed_one(REFUSED, at=until, ValidUntilSeconds=text) is None
        assert reported(refreshed_one(REFUSED, at=until + 1, ValidUntilSeconds=text)) == ("Failed", "True", "Expired")

    def test_a_time_beyond_all_times_never_comes(self):
        assert refreshed_one(REFUSED, at=10 * WEEK_S, ValidUntilSeconds="9" * 30) is None

    def test_a_request_whose_time_is_over_is_not_tried_any_more(self):
        found = seen(request(ValidUntilSeconds="60"), at=61)
        assert (found.queue, [other.phase for other in found.others]) == ((), [Phase.DUE])

    def test_growth_that_was_begun_stays_in_line_to_be_taken_back(self):
        begun = request("r", ATOMIC, details={"intent": INTENT}, ValidUntilSeconds="60")
        assert [request.phase for request in seen(begun, at=61).queue] == [Phase.INTENDED]
        assert reported(find_time_update(seen_one(begun, at=61), after(61))) == ("Failed", "True", "Expired")

    def test_growth_on_its_way_is_waited_for(self):
        waiting = condition("Provisioned", "False", "WaitingForNodes")
        assert refreshed_one(waiting, at=9999, kind=ATOMIC, ValidUntilSeconds="60") is None

    def test_n08_a_booking_ends(self):
        assert refreshed_one(PROVISIONED, at=600) is None
        over = refreshed_one(PROVISIONED, at=610)
        assert reported(over) == ("BookingExpired", "True", "CapacityReservationTimeExpired")
        assert isinstance(over, StatusUpdate)
        assert (over.kind, [condition.type for condition in over.conditions.all]) == (
            UpdateKind.BOOKING_EXPIRED,
            ["Provisioned", "BookingExpired"],
        )

    def test_n08_or_as_a_parameter_says(self):
        assert refreshed_one(PROVISIONED, at=60, BookingDurationSeconds="60") is None
        assert reported(refreshed_one(PROVISIONED, at=70, BookingDurationSeconds="60")) is not None

    def test_it_is_reported_once(self):
        assert refreshed_one(PROVISIONED, condition("BookingExpired", at=610), at=620) is None
        assert refreshed_one(REFUSED, FAILED, at=WEEK_S) is None

    def test_n18_what_is_over_is_deleted_after_a_week(self):
        assert refreshed_one(FAILED, at=WEEK_S) is None
        assert isinstance(refreshed_one(FAILED, at=WEEK_S + 10), RequestDeletion)
        expired = condition("BookingExpired", at=610)
        assert isinstance(refreshed_one(PROVISIONED, expired, at=WEEK_S + 10), RequestDeletion)

    def test_a_request_that_was_refused_long_ago_is_not_deleted_for_that(self):
        one = refreshed_one(REFUSED, condition("CapacityRevoked"), at=2 * WEEK_S)
        assert one is None

    def test_nor_one_that_is_younger_than_it_may_become(self):
        failed = seen_one(request("r", CHECK, FAILED, ValidUntilSeconds=str(2 * WEEK_S)))
        assert compute_deletion_time(failed) == after(2 * WEEK_S)

    def test_what_has_to_be_taken_back_is_not_deleted(self):
        assert refreshed_one(FAILED, at=2 * WEEK_S, kind=ATOMIC, details={"intent": INTENT}) is None

    def test_a_request_with_capacity_whose_pods_are_gone_has_failed(self):
        assert reported(refreshed_one(PROVISIONED, at=1, sets={"gone": 1})) == (
            "Failed",
            "True",
            "FailedToBookCapacity",
        )

    def test_a_loop_writes_a_limited_number_and_reports_before_it_cleans_up(self):
        old = [
            request(
                f"a{n}", CHECK, condition("Failed", at=-WEEK_S - 1), meta={"creation_timestamp": after(-2 * WEEK_S)}
            )
            for n in range(3)
        ]
        over = [request(f"z{n}", CHECK, condition("Provisioned", at=-601)) for n in range(3)]
        found = find_time_updates(seen(*old, *over), read_options({"provreq-refresh-writes": 4}), START)
        assert [type(change) for change in found] == [StatusUpdate, StatusUpdate, StatusUpdate, RequestDeletion]


class TestHowManyAtOnce:
    def due(self, *requests: Any, **options: Any) -> list[str]:
        found = seen(*requests, templates=(template(), template("u")))
        return [
            request_view.name.removeprefix("ml/") for request_view in select_due(found.queue, read_options(options))
        ]

    def test_all_of_them_usually(self):
        assert self.due(request("a"), request("b"), request("c", ATOMIC)) == ["a", "b", "c"]

    def test_n07_without_batches_one_check_a_turn_and_any_growth(self):
        made = [request("a"), request("b"), request("c", ATOMIC), request("d", ATOMIC)]
        assert self.due(*made, **{"check-capacity-batch-processing": False}) == ["a", "c", "d"]

    def test_batches_have_a_size(self):
        made = [request(name) for name in "abc"]
        assert self.due(*made, **{"check-capacity-provisioning-request-max-batch-size": 2}) == ["a", "b"]

    def test_n18_a_request_that_fails_at_once_takes_no_other_turn(self):
        made = [request("a", sets={"gone": 1}), request("b")]
        assert self.due(*made, **{"check-capacity-batch-processing": False}) == ["a", "b"]

    def test_the_request_that_fills_the_box_is_the_last(self):
        made = [request(name, ATOMIC, sets={"t": 1, "u": 1}) for name in "abcd"]
        assert self.due(*made, **{"atomic-provisioning-request-batch-timebox": "15ms"}) == ["a", "b"]

    def test_an_empty_box_has_room_for_one(self):
        made = [request(name) for name in "ab"]
        assert self.due(*made, **{"check-capacity-provisioning-request-batch-timebox": "0s"}) == ["a"]

    def test_growth_that_was_begun_is_always_among_them(self):
        begun = [request(name, ATOMIC, details={"intent": INTENT}) for name in "yz"]
        made = [request("a", ATOMIC), *begun]
        assert self.due(*made, **{"atomic-provisioning-request-batch-timebox": "0s"}) == ["y", "z"]

    def test_n43_five_hundred_small_ones_fit(self):
        assert len(self.due(*(request(f"r{n}", ATOMIC) for n in range(500)))) == 500

    @settings(deadline=None, max_examples=30)
    @given(size=st.integers(1, 5), begun=st.lists(st.booleans(), max_size=8))
    def test_no_request_starves(self, size: int, begun: list[bool]):
        """Turn by turn the line becomes shorter, from its front."""
        some = [seen_one(request(f"r{n}")) for n in range(len(begun))]
        line: list[RequestView] = [
            replace(request_view, phase=Phase.INTENDED if first else Phase.DUE)
            for request_view, first in zip(some, begun, strict=True)
        ]
        policy = read_options({"check-capacity-provisioning-request-max-batch-size": size})
        while line:
            served = select_due(line, policy)
            assert served
            line = [request_view for request_view in line if request_view not in served]
