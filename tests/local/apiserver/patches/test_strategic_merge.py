"""Strategic merge: directives and lists beyond what was recorded."""

from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.patches.patch_schema import PatchSchema
from plimsoll.local.apiserver.patches.results import Patched, PatchRefused
from plimsoll.local.apiserver.patches.strategic_merge import apply_strategic_merge_patch
from plimsoll.objects.schema.json_values import MAX_NESTING

_NAMES = st.sampled_from(["a", "b", "c", "d", "e"])
_CONTAINERS = st.lists(
    st.fixed_dictionaries({"name": _NAMES, "image": st.sampled_from(["x:1", "x:2"])}),
    max_size=5,
    unique_by=lambda dictionary: dictionary["name"],
)


def _outcome(document: dict[str, Any], patch: Any, kind: str = "Pod") -> Patched | PatchRefused:
    schema = PatchSchema.from_kind("v1", kind)
    assert schema is not None
    return apply_strategic_merge_patch(document, patch, schema=schema)


def _result(document: dict[str, Any], patch: Any, kind: str = "Pod") -> dict[str, Any]:
    outcome = _outcome(document, patch, kind)
    assert isinstance(outcome, Patched)
    value: dict[str, Any] = outcome.value
    return value


def _pod(*containers: dict[str, Any], **spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": list(containers), **spec}}


def _named(*names: str) -> list[dict[str, Any]]:
    return [{"name": name} for name in names]


@settings(max_examples=200, deadline=None)
@given(_CONTAINERS, _CONTAINERS)
def test_lists_are_merged_by_key_and_no_input_changes(live: list[dict[str, Any]], patch: list[dict[str, Any]]) -> None:
    before = copy.deepcopy((live, patch))
    merged = _result(_pod(*live), _pod(*patch))["spec"]["containers"]
    assert (live, patch) == before
    expected = {item["name"]: item for item in live} | {item["name"]: item for item in patch}
    assert {item["name"]: item for item in merged} == expected
    order = [item["name"] for item in merged]
    in_patch = [item["name"] for item in patch]
    assert [name for name in order if name in in_patch] == in_patch
    assert [name for name in order if name not in in_patch] == [
        item["name"] for item in live if item["name"] not in in_patch
    ]


@settings(max_examples=100, deadline=None)
@given(_CONTAINERS)
def test_a_patch_with_what_is_there_changes_nothing(live: list[dict[str, Any]]) -> None:
    pod = _pod(*live, nodeName="n")
    assert _result(pod, copy.deepcopy(pod)) == pod
    assert _result(pod, {}) is pod


def test_a_patch_that_names_its_own_order_wins_over_the_server() -> None:
    patch = {"spec": {"$setElementOrder/containers": _named("c", "a"), "containers": [{"name": "c", "image": "x"}]}}
    merged = _result(_pod(*_named("a", "b")), patch)["spec"]["containers"]
    assert [item["name"] for item in merged] == ["c", "a", "b"]


def test_the_order_must_fit_the_patch() -> None:
    patch = {"spec": {"$setElementOrder/containers": _named("a", "b"), "containers": _named("b", "a")}}
    outcome = _outcome(_pod(*_named("a", "b")), patch)
    assert isinstance(outcome, PatchRefused)
    assert outcome.code == 500
    assert outcome.message.startswith("The order in patch list:\n[map[name:b] map[name:a]]\n doesn't match")


def test_deletion_takes_every_item_of_the_key() -> None:
    live = {"spec": {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}, {"port": 81, "name": "c"}]}}
    patched = _result(live, {"spec": {"ports": [{"port": 80, "$patch": "delete"}]}}, "Service")
    assert patched == {"spec": {"ports": [{"port": 81, "name": "c"}]}}


def test_directives_in_new_values_have_nothing_to_act_on() -> None:
    patch = {"spec": {"volumes": [{"name": "v", "$retainKeys": ["name", "emptyDir"], "emptyDir": {"medium": None}}]}}
    assert _result({}, patch) == {"spec": {"volumes": [{"name": "v", "emptyDir": {}}]}}


def test_a_map_can_be_emptied() -> None:
    live = {"metadata": {"labels": {"a": "1"}}}
    assert _result(live, {"metadata": {"labels": {"$patch": "delete"}}}) == {"metadata": {"labels": {}}}


@pytest.mark.parametrize(
    ("patch", "code", "message"),
    [
        ({"spec": {"$retainKeys": "x"}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$retainKeys": ["a"], "nodeName": "n"}}, 400, "invalid patch format of retainKeys"),
        ({"spec": {"$setElementOrderX": []}}, 400, "invalid patch format of setElementOrder list"),
        ({"metadata": {"$deleteFromPrimitiveList": []}}, 400, "invalid patch format of primitive list"),
        (
            {"spec": {"containers": [{"$patch": "merge", "name": "a"}]}},
            500,
            "merging lists cannot yet be specified in the patch",
        ),
        ({"spec": {"$patch": "frob"}}, 500, "unknown patch type: frob in map: map[$patch:frob]"),
        ({"spec": {"containers": ["x"]}}, 500, "list element types are not identical: map[string]interface {} string"),
    ],
)
def test_bad_patches_are_refused_in_the_servers_words(patch: Any, code: int, message: str) -> None:
    outcome = _outcome({"metadata": {}, **_pod({"name": "a"})}, patch)
    assert isinstance(outcome, PatchRefused)
    assert (outcome.code, outcome.message) == (code, message)


def test_long_lists_are_merged_in_one_pass() -> None:
    live = _pod(*_named(*(f"c{index}" for index in range(20_000))))
    patch = _pod(*({"name": f"c{index}", "image": "x"} for index in range(19_999, -1, -1)))
    merged = _result(live, patch)["spec"]["containers"]
    assert merged == patch["spec"]["containers"]


def test_the_deepest_values_are_merged() -> None:
    def nested(leaf: Any) -> Any:
        for _ in range(MAX_NESTING - 2):
            leaf = {"a": leaf}
        return leaf

    live, patch = {"metadata": nested({"x": 1})}, {"metadata": nested({"y": 1})}
    assert _result(live, patch) == {"metadata": nested({"x": 1, "y": 1})}
    assert _result({}, patch) == patch
