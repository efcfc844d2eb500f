"""The ConfigMap with the last plan of each object: at most 256 KiB, the oldest dropped, each whole."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.core.plans import Outcome, Plan, Ref, encode
from plimsoll.journal.entries import Entry
from plimsoll.journal.last_plans import MOST_BYTES, build_key, build_last_plans, read_last_plans
from tests.journal.builders import GROUP, done, grow, left, plan, pod


def entry(stated: Plan, number: int = 1, outcomes: tuple[Outcome, ...] = ()) -> Entry:
    return Entry(number=number, plan=stated, outcomes=outcomes)


def size(data: dict[str, str]) -> int:
    return sum(len(key) + len(value.encode()) for key, value in data.items())


def test_each_object_has_its_last_report():
    first = entry(plan(1, not_done=(left("a", "b", why="no room"),)))
    second = entry(plan(2, actions=(), not_done=(left("b", why="too large"),)))
    found = read_last_plans(build_last_plans(build_last_plans({}, [first]), [second]))
    assert {ref: stated.snapshot for ref, stated in found.items()} == {GROUP: 1, pod("a"): 1, pod("b"): 2}
    assert str(found[pod("b")].not_done[0]) == "pod/default/b left pending: too large"


def test_an_older_entry_does_not_replace_a_newer_one():
    data = build_last_plans({}, [entry(plan(5)), entry(plan(3))])
    assert read_last_plans(data)[GROUP].snapshot == 5


def test_outcomes_of_an_object_come_along():
    data = build_last_plans({}, [entry(plan(1), outcomes=(done(),))])
    assert read_last_plans(data)[GROUP].outcomes == (done(),)


def test_others_of_the_same_reason_are_counted_and_not_named():
    crowd = left(*(f"p{number}" for number in range(50)), unnamed=7)
    data = build_last_plans({}, [entry(plan(1, actions=(), not_done=(crowd,)))])
    stated = read_last_plans(data)[pod("p3")].not_done[0]
    assert (stated.about, stated.unnamed) == ((pod("p3"),), 56)


def test_it_is_never_larger_than_256_kib_and_the_oldest_go_first():
    assert MOST_BYTES == 262_144
    data: dict[str, str] = {}
    for number in range(30):
        crowd = tuple(f"p{number}-{index}" for index in range(100))
        data = build_last_plans(data, [entry(plan(number, not_done=(left(*crowd, why="x" * 100),)), number)])
        assert size(data) <= MOST_BYTES
    kept = read_last_plans(data)
    assert len(kept) == len(data)
    assert {stated.snapshot for stated in kept.values()} == set(
        range(min(last_plan.snapshot for last_plan in kept.values()), 30)
    )
    assert kept[GROUP].snapshot == 29
    assert size(data) > MOST_BYTES - 1024


def test_what_something_is_done_about_goes_before_what_is_left():
    crowd = left(*(f"p{index:04}" for index in range(2000)))
    data = build_last_plans({}, [entry(plan(1, actions=(grow(Ref(kind="zz", name="last")),), not_done=(crowd,)))])
    kept = read_last_plans(data)
    assert Ref(kind="zz", name="last") in kept
    assert pod("p0000") in kept
    assert pod("p1999") not in kept


def test_what_does_not_fit_at_all_is_left_out_and_never_cut():
    huge = entry(plan(2, actions=(), not_done=(left("big", why="x" * MOST_BYTES),)))
    data = build_last_plans({}, [entry(plan(1)), huge])
    assert list(read_last_plans(data)) == [GROUP]


def test_what_people_wrote_into_it_is_dropped():
    data = build_last_plans({"mine": "{", "other": '{"ref": 3}', "empty": ""}, [entry(plan(1))])
    assert list(data) == [build_key(GROUP)]


@pytest.mark.parametrize(
    "ref",
    [
        GROUP,
        pod("web-0"),
        Ref(kind="nodegroup", name="nodeautoprovisioning_n1-standard-4_1a2b3c4d"),
        Ref(kind="nodegroup", name="MachineDeployment/ns/name"),
        Ref(kind="nodegroup", name="arn:aws:x/" + "y" * 300),
    ],
)
def test_every_key_is_one_that_a_configmap_takes(ref: Ref):
    assert re.fullmatch(r"[-._a-zA-Z0-9]{1,253}", build_key(ref))


def test_keys_do_not_clash():
    refs = [Ref(kind="a", namespace="b", name="c_d"), Ref(kind="a", namespace="", name="b_c_d"), pod("c_d")]
    assert len({build_key(ref) for ref in refs}) == 3


texts = st.text(max_size=30)


@settings(max_examples=60, deadline=None)
@given(
    stated=st.lists(st.tuples(st.integers(0, 20), texts, st.integers(0, 30)), max_size=20), room=st.integers(0, 4000)
)
def test_whatever_is_reported_it_fits_and_what_is_kept_is_whole_and_the_newest(
    stated: list[tuple[int, str, int]], room: int
):
    entries = [entry(plan(number, actions=(), not_done=(left(f"p{name}", why=why),))) for number, why, name in stated]
    data = build_last_plans({}, entries, most_bytes=room)
    assert size(data) <= room
    kept = read_last_plans(data)
    assert len(kept) == len(data)
    dropped = [
        last_plan for ref, last_plan in read_last_plans(build_last_plans({}, entries)).items() if ref not in kept
    ]
    for last_plan in dropped:
        alone = len(build_key(last_plan.ref)) + len(encode(last_plan))
        assert alone > room or all(last_plan.at <= other.at for other in kept.values())
