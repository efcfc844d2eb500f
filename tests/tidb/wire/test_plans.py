"""An answer of `POST /autoscaling` is taken as a whole or refused as a whole (docs/design/tidb.md 3.3)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.tidb.wire.plans import RejectedPlans, read_plans, write_plans
from tests.narrowing import instance_of
from tests.tidb.planning.planner.builders import SMALL, TIKV, base, planned, strategy

LABELS = {"group": "pd-auto-scaling-tikv-small", "resource-type": "small", "specialUse": "hotRegion"}
GROUP = {"component": "tikv", "count": 1, "resource_type": "small", "labels": LABELS}
OWN = {"component": "tikv", "count": 4, "resource_type": "default_homogeneous_tikv", "labels": {}}


def test_plans_are_read_as_they_were_written():
    plans = planned(strategy(SMALL), *base(0.95, 0.3, 0.3)).plans
    assert read_plans(write_plans(plans), TIKV) == plans
    assert json.loads(write_plans(plans)) == [{**GROUP, "count": 2}]


def test_groups_and_the_cluster_itself_are_distinguished():
    group, own = instance_of(tuple, read_plans(json.dumps([GROUP, OWN]).encode(), TIKV))
    assert (group.group, group.is_homogeneous) == ("pd-auto-scaling-tikv-small", False)
    assert (own.group, own.is_homogeneous) == ("default_homogeneous_tikv", True)


@pytest.mark.parametrize("body", [b"null", b"[]", b" null\n"])
def test_no_plans_is_an_answer(body: bytes):
    assert read_plans(body, TIKV) == ()


@pytest.mark.parametrize(
    "changed",
    [
        {"count": -1},
        {"count": 1.5},
        {"count": "1"},
        {"count": True},
        {"count": 2**31},
        {"count": None},
        {"component": "tidb"},
        {"component": "pd"},
        {"component": None},
        {"resource_type": None},
        {"resource_type": ""},
        {"resource_type": "default_homogeneous_tidb", "labels": {}},
        {"labels": {}},
        {"labels": {**LABELS, "group": ""}},
        {"labels": {**LABELS, "group": "g" * 64}},
        {"labels": {**LABELS, "group": "a/b"}},
        {"labels": {**LABELS, "-zone": "a"}},
        {"labels": {**LABELS, "zone": "a b"}},
        {"labels": {**LABELS, "zone": "a\n"}},
        {"labels": {**LABELS, "zone": 1}},
    ],
    ids=str,
)
def test_one_thing_wrong_and_the_whole_is_refused(changed: dict[str, Any]):
    bad = {key: value for key, value in {**GROUP, **changed}.items() if value is not None}
    assert isinstance(read_plans(json.dumps([OWN, bad]).encode(), TIKV), RejectedPlans)


@pytest.mark.parametrize(
    "body",
    [b"", b"<html></html>", b"{}", b'"no"', b"[null]", b"[[]]", b"[{},]", b"\xff", b"[" * 100_000, b"NaN", b"[1]"],
)
def test_what_is_no_list_of_plans_is_refused(body: bytes):
    assert isinstance(read_plans(body, TIKV), RejectedPlans)


def test_a_group_that_stands_twice_is_refused():
    for twice in (GROUP, OWN):
        found = read_plans(json.dumps([twice, twice]).encode(), TIKV)
        assert isinstance(found, RejectedPlans)
        assert "occurs twice" in found.problem


def test_labels_that_are_null_are_none():
    """As Go writes a map that was never made."""
    (own,) = instance_of(tuple, read_plans(json.dumps([{**OWN, "labels": None}]).encode(), TIKV))
    assert (own.count, own.labels) == (4, {})


def test_a_group_without_labels_is_refused_all_the_same():
    assert read_plans(json.dumps([{**GROUP, "labels": None}]).encode(), TIKV) == RejectedPlans(
        problem="[0]: small has no label group"
    )


@pytest.mark.parametrize(
    "body",
    [
        b'[{"component":"tikv","count":4,"count":1,"resource_type":"default_homogeneous_tikv"}]',
        b'[{"component":"tikv","count":4,"resource_type":"default_homogeneous_tikv","more":[{"count":1,"count":2}]}]',
    ],
    ids=["in a plan", "in what nobody reads"],
)
def test_a_key_that_stands_twice_is_refused(body: bytes):
    assert read_plans(body, TIKV) == RejectedPlans(problem="key 'count' occurs twice in one object")
