"""What becomes of one more event: the rules of correlation, without a server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.recorder.correlation import COMBINED, CorrelationSettings, Correlator, Entry, Written
from plimsoll.kube.recorder.event_objects import EventType, Occurrence, build_event_name, cut
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.runtime.entropy import SeededEntropy
from tests.narrowing import present

START = datetime(2026, 1, 1, tzinfo=UTC)
GENEROUS = CorrelationSettings(burst=10_000)


class CorrelatorHarness:
    """A correlator whose entries are all written: counts by name."""

    def __init__(self, correlation: CorrelationSettings = GENEROUS) -> None:
        self.correlator = Correlator(correlation)
        self.now_s = 1000.0
        self.counts: dict[str, int] = {}
        self.messages: dict[str, str] = {}
        self.dropped = 0

    def happen(self, message: str = "m", *, name: str = "p", reason: str = "R", after_s: float = 0.0) -> Entry | None:
        self.now_s += after_s
        happened = Occurrence(
            about=ObjectReference(api_version="v1", kind="Pod", namespace="here", name=name, uid=f"u-{name}"),
            type=EventType.NORMAL,
            reason=reason,
            message=message,
            action="",
            at=START + timedelta(seconds=self.now_s),
        )
        entry = self.correlator.build_entry(happened, self.now_s)
        if entry is None:
            self.dropped += 1
            return None
        before = entry.before or Written(name=f"e{len(self.counts)}", count=0, first_at=happened.at)
        now = Written(name=before.name, count=before.count + 1, first_at=before.first_at)
        self.counts[now.name] = now.count
        self.messages[now.name] = entry.message
        self.correlator.record_write(entry, now, self.now_s)
        return entry


def test_the_same_again_counts_up_one_event():
    book = CorrelatorHarness()
    for _ in range(3):
        book.happen()
    assert book.counts == {"e0": 3}


@pytest.mark.parametrize("other", [{"message": "n"}, {"name": "q"}, {"reason": "S"}])
def test_another_message_object_or_reason_is_another_event(other: dict[str, Any]):
    book = CorrelatorHarness()
    book.happen()
    book.happen(**other)
    assert book.counts == {"e0": 1, "e1": 1}


def test_the_window_counts_from_the_last_time():
    book = CorrelatorHarness()
    for _ in range(4):
        book.happen(after_s=600)
    assert book.counts == {"e0": 4}
    book.happen(after_s=601)
    assert book.counts == {"e0": 4, "e1": 1}


def test_the_tenth_different_message_and_all_further_ones_are_combined():
    book = CorrelatorHarness()
    for number in range(13):
        book.happen(f"m{number}")
    assert list(book.counts.values()) == [1] * 9 + [4]
    assert book.messages["e9"] == COMBINED + "m12"


def test_a_message_known_before_the_crowd_still_counts_for_itself():
    book = CorrelatorHarness()
    for number in range(12):
        book.happen(f"m{number}")
    book.happen("m0")
    assert book.counts["e0"] == 2


def test_after_a_quiet_window_messages_are_reported_one_by_one_again():
    book = CorrelatorHarness()
    for number in range(12):
        book.happen(f"m{number}")
    entry = book.happen("new", after_s=601)
    assert entry is not None
    assert entry.message == "new"


def test_an_object_may_chatter_25_times_and_then_once_in_5_minutes():
    book = CorrelatorHarness(CorrelationSettings())
    for _ in range(40):
        book.happen()
    assert (sum(book.counts.values()), book.dropped) == (25, 15)
    assert book.happen(after_s=299) is None
    assert book.happen(after_s=1) is not None
    assert book.happen() is None


def test_chatter_about_one_object_silences_no_other():
    book = CorrelatorHarness(CorrelationSettings())
    for _ in range(40):
        book.happen()
    assert book.happen(name="other") is not None


def test_only_so_much_is_remembered():
    book = CorrelatorHarness(CorrelationSettings(remembered=5, burst=1_000))
    for number in range(50):
        book.happen(name=f"p{number}")
    correlator = book.correlator
    assert [len(cache._values) for cache in (correlator._similar, correlator._written, correlator._budgets)] == [
        5,
        5,
        5,
    ]
    assert present(book.happen(name="p49")).before is not None
    assert present(book.happen(name="p0")).before is None


@settings(max_examples=200, deadline=None)
@given(
    story=st.lists(
        st.tuples(st.sampled_from("abcdefghijklmn"), st.sampled_from("pq"), st.integers(0, 700)), max_size=80
    )
)
def test_counts_and_drops_add_up(story: list[tuple[str, str, int]]):
    book = CorrelatorHarness(CorrelationSettings(burst=5, similar=4))
    for message, name, after_s in story:
        book.happen(message, name=name, after_s=after_s)
    assert sum(book.counts.values()) + book.dropped == len(story)


# ---- texts


@given(st.text(st.characters(codec=None), max_size=50), st.integers(0, 60))
def test_a_cut_text_is_short_enough_whole_utf8_and_a_beginning(text: str, limit: int):
    short = cut(text, limit)
    assert len(short.encode()) <= limit
    assert text.encode(errors="replace").decode().startswith(short)


def test_a_text_that_fits_is_left_alone():
    assert cut("grün", 5) == "grün"
    assert cut("grün", 3) == "gr"


def test_an_event_is_named_after_its_object_and_the_time():
    assert build_event_name("web-0", 0x17, SeededEntropy("e")) == "web-0.17"


@pytest.mark.parametrize("name", ["system:node", "Upper", "x" * 250])
def test_an_object_with_a_name_no_event_can_have_gives_way_to_a_random_one(name: str):
    given_name = build_event_name(name, 0x1700000000000000, SeededEntropy("e"))
    assert given_name.endswith(".1700000000000000")
    assert len(given_name) == 36 + 17
