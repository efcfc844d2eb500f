"""The comparison itself: a recorded answer is equal to itself, and no real difference is masked away."""

from __future__ import annotations

import copy
import json

import pytest

from tests.conformance.comparison import body_differences, differences
from tests.conformance.exchanges import Reply
from tests.conformance.masks import in_any_order, masked
from tests.conformance.recordings import API_SERVER_GROUPS, RecordedExchange, by_id, golden
from tests.conformance.substitutions import Substitutions


def _as_answered(recorded: RecordedExchange) -> Reply:
    """The recorded answer, as if it had come from our server."""
    warnings = recorded.response_headers.get("Warning") or []
    headers = [("Warning", text) for text in warnings]
    if "Retry-After" in recorded.response_headers:
        headers.append(("Retry-After", recorded.response_headers["Retry-After"]))
    is_text = isinstance(recorded.response, str)
    raw = recorded.response if is_text else json.dumps(recorded.response)
    is_watch = isinstance(recorded.response, list)
    return Reply(
        status=recorded.status,
        content_type=recorded.response_headers.get("Content-Type", ""),
        headers=headers,
        raw=raw.encode(),
        body=None if is_text or is_watch else recorded.response,
        events=recorded.response if is_watch else None,
    )


@pytest.mark.parametrize("group", API_SERVER_GROUPS)
def test_a_recorded_answer_is_equal_to_itself(group: str):
    for recorded in golden(group):
        assert not differences(recorded, _as_answered(recorded), Substitutions()), recorded.id


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("metadata", "generation"), 7),
        (("metadata", "namespace"), "other"),
        (("spec", "containers", 0, "image"), "nginx:2"),
        (("spec", "priority"), 1),
        (("metadata", "managedFields", 0, "manager"), "somebody"),
        (("status", "phase"), "Running"),
    ],
)
def test_a_changed_value_is_a_difference(path: tuple[str | int, ...], value: object):
    recorded = by_id("create-002").response
    changed = copy.deepcopy(recorded)
    inner = changed
    for part in path[:-1]:
        inner = inner[part]
    inner[path[-1]] = value
    assert len(list(body_differences(recorded, changed, is_cut=False, id_="create-002"))) == 1


def test_a_missing_and_an_additional_field_are_differences():
    assert list(body_differences({"a": None}, {"b": None}, is_cut=False, id_="x")) != []
    assert list(body_differences({"a": 1}, {"a": 1, "b": None}, is_cut=False, id_="x")) == ["b: ours alone, null"]


def test_true_is_not_one():
    assert list(body_differences({"a": True}, {"a": 1}, is_cut=False, id_="x")) != []


def test_uids_revisions_and_times_of_servers_are_masked_and_those_of_clients_are_not():
    one = {"uid": "75cfc383-82e7-42f9-bb9c-0d88452d8be6", "resourceVersion": "345", "time": "2026-11-15T04:02:23Z"}
    other = {"uid": "2ced9b6e-abe3-40f9-9ebf-ba7fdc4c8fdf", "resourceVersion": "7", "time": "2026-11-15T05:00:00Z"}
    assert masked(one) == masked(other)
    assert masked({"time": "2026-01-01T00:00:00Z"}) != masked({"time": "2026-11-15T05:00:00Z"})
    assert masked({"resourceVersion": ""}) != masked({"resourceVersion": "7"})


def test_a_generated_name_is_masked_only_after_its_prefix():
    assert masked({"generateName": "a-", "name": "a-bcdfg"}) == masked({"generateName": "a-", "name": "a-zz245"})
    assert masked({"generateName": "a-", "name": "a-bcdfg"}) != masked({"generateName": "a-", "name": "b-bcdfg"})


def test_causes_of_invalid_custom_resources_are_compared_as_a_set():
    status = by_id("crd-037").response
    causes = status["details"]["causes"]
    turned = {**status, "details": {**status["details"], "causes": causes[::-1]}}
    assert in_any_order(status) == in_any_order(turned)
    fewer = {**status, "details": {**status["details"], "causes": causes[1:]}}
    assert in_any_order(status) != in_any_order(fewer)
