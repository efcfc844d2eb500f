"""Lists of any content: what they change follows from each item alone, and nothing that runs is removed by them."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from plimsoll.fleet.agent.model.claims import ClaimsList
from plimsoll.fleet.agent.model.instances import LocalInstance
from plimsoll.fleet.agent.planning.intake import IntakeVerb, plan_intake
from plimsoll.fleet.agent.wire.kafka_lists import UnreadableList, read_kafka_list
from tests.fleet.agent.control_planes import build_item

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
PATHS = st.sampled_from(
    [
        ("id",),
        ("metadata",),
        ("spec",),
        ("metadata", "name"),
        ("metadata", "namespace"),
        ("metadata", "labels"),
        ("metadata", "annotations"),
        ("spec", "capacity"),
        ("spec", "endpoint"),
        ("spec", "deleted"),
        ("spec", "versions"),
        ("spec", "serviceAccounts"),
    ]
)
RUNNING = LocalInstance(namespace="kafka-a", name="k-a", id="a", placement_id="p1", hash="h")


def read(*items: Any) -> Any:
    return read_kafka_list(json.dumps({"items": list(items)}).encode())


@given(changes=st.lists(st.tuples(PATHS, JSON), min_size=1, max_size=3), lists_without=st.integers(0, 9))
def test_an_item_with_wrong_fields_never_removes_what_runs(
    changes: list[tuple[tuple[str, ...], Any]], lists_without: int
):
    item = build_item("a")
    for path, value in changes:
        place = item
        for key in path[:-1]:
            if not isinstance(place.get(key), dict):
                place[key] = {}
            place = place[key]
        place[path[-1]] = value
    plan = plan_intake(read(item), {"kafka-a": RUNNING}, ClaimsList(), lists_without={"kafka-a": lists_without})
    assert all(action.verb is not IntakeVerb.REMOVE for action in plan.actions)


@given(body=st.binary(max_size=50) | JSON.map(lambda value: json.dumps(value).encode()))
def test_any_body_is_a_list_or_none(body: bytes):
    try:
        listed = read_kafka_list(body)
    except UnreadableList:
        return
    plan = plan_intake(listed, {"kafka-a": RUNNING}, ClaimsList(), lists_without={"kafka-a": 9})
    assert plan.actions == ()


def test_5000_items_are_5000_instances_and_the_same_list_changes_nothing_more():
    listed = read(*(build_item(f"k{number}") for number in range(5_000)))
    first = plan_intake(listed, {}, ClaimsList(), lists_without={})
    assert [action.verb for action in first.actions] == [IntakeVerb.CREATE] * 5_000
    local = {
        item.namespace: LocalInstance(
            namespace=item.namespace, name=item.name, id=item.id, placement_id=item.placement_id, hash=item.hash
        )
        for item in listed.items
    }
    again = plan_intake(listed, local, ClaimsList(), lists_without={})
    assert (again.actions, again.kept, again.gone) == ((), (), ())
