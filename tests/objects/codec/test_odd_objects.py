"""Any bytes decode or are reported; nothing raises, and one bad object does not lose the others."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.events import Event
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod, PodTemplate
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import (
    DecodedList,
    RawObject,
    convert_object,
    decode_list,
    decode_list_with_raw,
    decode_object,
    decode_with_raw,
    encode_object,
)

if TYPE_CHECKING:
    from plimsoll.objects.api.meta import WireObject

DEEP = b'{"a":' * 20_000 + b"1" + b"}" * 20_000
KINDS_TO_TRY = [Pod, Node, Lease, Event, CustomResourceDefinition]

FIELDS = st.sampled_from(
    [
        "kind",
        "apiVersion",
        "metadata",
        "spec",
        "status",
        "items",
        "labels",
        "containers",
        "conditions",
        "renewTime",
        "creationTimestamp",
        "eventTime",
        "involvedObject",
        "series",
        "versions",
        "capacity",
        "taints",
        "name",
        "continue",
    ]
)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8) | st.just("2026-01-01T00:00:00Z")
)
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8) | FIELDS, inner, max_size=5),
    max_leaves=20,
)


def pod(name: str = "a", **spec: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "n", "uid": f"uid-{name}", "resourceVersion": "41"}
    return {"metadata": metadata, "spec": {"nodeName": "node-1", **spec}}


def pod_list(*items: Any) -> bytes:
    return json.dumps({"kind": "PodList", "metadata": {"resourceVersion": "99"}, "items": items}).encode()


def bad_pod(data: bytes) -> BadObject:
    found = decode_object(Pod, data)
    assert isinstance(found, BadObject)
    return found


BAD_PORT: dict[str, Any] = {"containers": [{"ports": [{"containerPort": "http"}]}]}


def test_a_bad_object_names_its_field_and_its_identity():
    assert bad_pod(json.dumps(pod(**BAD_PORT)).encode()) == BadObject(
        kind="Pod",
        problem="spec.containers[0].ports[0].containerPort: Expected `int`, got `str`",
        namespace="n",
        name="a",
        uid="uid-a",
        resource_version="41",
        node_name="node-1",
    )


def test_parsed_data_is_reported_in_the_same_words():
    value = pod(**BAD_PORT)
    assert convert_object(Pod, value) == bad_pod(json.dumps(value).encode())


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ({"metadata": {"labels": {"a": "b", "c": 1}}}, "metadata.labels[c]: Expected `str`, got `int`"),
        ({"metadata": {"labels": {"a": ["b"]}}}, "metadata.labels[a]: Expected `str`, got `array`"),
        ({"metadata": []}, "metadata: Expected `object`, got `array`"),
        ({"kind": "Status"}, "kind: expected Pod, got Status"),
        ({"spec": {"containers": {"a": 1}}}, "spec.containers: Expected `array`, got `object`"),
    ],
)
def test_problems_name_the_field(value: Any, problem: str):
    assert bad_pod(json.dumps(value).encode()).problem == problem
    converted = convert_object(Pod, value)
    assert isinstance(converted, BadObject)
    assert converted.problem == problem


@pytest.mark.parametrize(
    ("time", "problem"),
    [
        ("2026-01-01T00:00:00", "metadata.creationTimestamp: Expected `datetime` with a timezone component"),
        ("today", "metadata.creationTimestamp: Invalid RFC3339 encoded datetime"),
    ],
)
def test_times_that_are_none_are_reported_where_they_may_not_be_unknown(time: str, problem: str):
    converted = convert_object(PodTemplate, {"metadata": {"creationTimestamp": time}})
    assert isinstance(converted, BadObject)
    assert converted.problem == problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "Input data was truncated"),
        (b"\xff\xfe", "JSON is malformed: invalid character (byte 0)"),
        (b'{"metadata": {"name": "\xff"}}', "not UTF-8: invalid start byte"),
        (b'{"spec": {"priority": NaN}}', "JSON is malformed: invalid character (byte 22)"),
        (b'{"spec": {"nodeName": 1e400}}', "spec.nodeName: Expected `str`, got `OutOfRange`"),
        (b'{"spec": {"hostname": ' + b"9" * 10_000 + b"}}", "spec.hostname: Expected `str`, got `OutOfRange`"),
        (b'{"spec": ' + DEEP + b"}", "nested too deeply"),
        (b"[" * 100_000, "Expected `object`, got `array`"),
        (b"[]", "Expected `object`, got `array`"),
        (b'"pod"', "Expected `object`, got `str`"),
        (b"null", "Expected `object`, got `null`"),
        (b"{} {}", "JSON is malformed: trailing characters (byte 4)"),
    ],
)
def test_hostile_bytes_are_reported(data: bytes, problem: str):
    assert bad_pod(data).problem == problem


def test_the_identity_is_read_from_truncated_text():
    whole = json.dumps(pod(containers=[{"name": "c"}])).encode()
    found = bad_pod(whole[:-8])
    assert (found.namespace, found.name, found.uid) == ("n", "a", "uid-a")


def test_the_identity_is_read_from_an_object_nested_too_deeply():
    found = bad_pod(json.dumps(pod()).encode()[:-1] + b', "status": ' + DEEP + b"}")
    assert (found.name, found.node_name, found.problem) == ("a", "node-1", "nested too deeply")


def test_only_pods_hold_a_node():
    found = decode_object(Node, json.dumps({"metadata": {"name": 1}, "spec": {"nodeName": "x"}}).encode())
    assert isinstance(found, BadObject)
    assert found.node_name == ""


def test_unknown_numbers_in_unread_fields_do_no_harm():
    found = decode_object(Pod, b'{"metadata": {"name": "a"}, "status": {"x": ' + b"9" * 10_000 + b"}}")
    assert not isinstance(found, BadObject)


@pytest.mark.parametrize("bad", [pod("b", **BAD_PORT), None, 7, [], "text"])
def test_one_bad_object_does_not_lose_the_list(bad: Any):
    found = decode_list(Pod, pod_list(pod("a"), bad, pod("c")))
    assert [item.metadata.name for item in found.items] == ["a", "c"]
    assert len(found.bad) == 1
    assert found.metadata.resource_version == "99"
    assert found.problem == ""


def test_the_bad_object_of_a_list_is_named():
    found = decode_list(Pod, pod_list(pod("a"), pod("b", **BAD_PORT)))
    assert found.bad[0].name == "b"
    assert found.bad[0].node_name == "node-1"


def test_an_object_nested_too_deeply_does_not_lose_the_list():
    deep = json.dumps(pod("deep")).encode()[:-1] + b', "status": ' + DEEP + b"}"
    data = pod_list(pod("a"), "here", pod("c")).replace(b'"here"', deep)
    found = decode_list(Pod, data)
    assert [item.metadata.name for item in found.items] == ["a", "c"]
    assert [(bad.name, bad.problem) for bad in found.bad] == [("deep", "nested too deeply")]
    assert found.metadata.resource_version == "99"


def test_text_that_is_not_utf_8_does_not_lose_the_list():
    found = decode_list(Pod, pod_list(pod("a"), pod("here")).replace(b'"here"', b'"\xff"'))
    assert [item.metadata.name for item in found.items] == ["a"]
    assert found.bad[0].problem == "not UTF-8: invalid start byte"


@pytest.mark.parametrize("neighbour", ["fine", 7])
def test_an_item_of_another_kind_is_bad_whatever_its_neighbours_are(neighbour: Any):
    named = [{"metadata": {"name": name}} for name in ("a", "n", neighbour)]
    items = [named[0], {"kind": "Node", **named[1]}, named[2]]
    found = decode_list(Pod, json.dumps({"kind": "PodList", "items": items}).encode())
    assert "kind: expected Pod, got Node" in [bad.problem for bad in found.bad]
    assert found.items[0].metadata.name == "a"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b'{"kind": "Status", "status": "Failure"}', "kind: expected PodList, got Status"),
        (b'{"kind": "NodeList", "items": [{"metadata": {"name": "n"}}]}', "kind: expected PodList, got NodeList"),
        (b"{}", "items: expected a list, got none"),
        (b'{"kind": "PodList", "items": {"a": 1}}', "items: Expected `array | null`, got `object`"),
        (b'{"kind": 7, "items": []}', "kind: Expected `str | null`, got `int`"),
        (b"[]", "Expected `object`, got `array`"),
        (b"\xff", "JSON is malformed: invalid character (byte 0)"),
        (b'{"kind": "PodList", "items": [{}, {}', "Input data was truncated"),
        (b'{"kind": "PodList", "x": ' + DEEP[:50_000], "nested too deeply"),
        (b'{"kind": "PodList", "items": [' + DEEP[:50_000], "nested too deeply"),
    ],
)
def test_what_is_no_list_is_a_problem_and_not_an_empty_list(data: bytes, problem: str):
    assert decode_list(Pod, data) == DecodedList(problem=problem)


def test_an_object_of_another_kind_in_a_mixed_list_is_bad():
    found = decode_list(Pod, b'{"kind": "List", "items": [{"kind": "Pod"}, {"kind": "Node"}]}')
    assert len(found.items) == 1
    assert [bad.problem for bad in found.bad] == ["kind: expected Pod, got Node"]


def test_a_list_with_bad_metadata_keeps_its_items_and_is_reported():
    found = decode_list(Pod, b'{"kind": "PodList", "metadata": {"resourceVersion": 5}, "items": [{}]}')
    assert len(found.items) == 1
    assert found.problem == "metadata.resourceVersion: Expected `str`, got `int`"


def test_a_page_of_a_list_says_how_to_go_on():
    found = decode_list(
        Pod, b'{"kind": "PodList", "metadata": {"continue": "abc", "remainingItemCount": 5}, "items": []}'
    )
    assert found.metadata.continue_ == "abc"
    assert found.metadata.remaining_item_count == 5


def test_a_large_label_map_decodes():
    labels = {f"label-{index}": "v" for index in range(500_000)}
    value = {"metadata": {"name": "a", "labels": labels}}
    data = json.dumps(value).encode()
    assert len(data) > 10_000_000
    found = decode_object(Node, data)
    assert not isinstance(found, BadObject)
    assert found.metadata.labels == labels


def test_a_large_label_map_with_one_bad_value_is_reported():
    labels: dict[str, Any] = {f"label-{index}": "v" for index in range(300_000)}
    found = decode_object(Node, json.dumps({"metadata": {"name": "a", "labels": labels | {"z": 1}}}).encode())
    assert isinstance(found, BadObject)
    assert (found.name, found.problem) == ("a", "metadata.labels[z]: Expected `str`, got `int`")


def test_kinds_that_are_copied_keep_their_bytes():
    data = b'{"metadata": {"name": "t"}, "template": {"spec": {"unknown": true}}}'
    found = decode_with_raw(PodTemplate, data)
    assert isinstance(found, RawObject)
    assert found.view.metadata.name == "t"
    assert found.raw == data
    assert isinstance(decode_with_raw(PodTemplate, b"[]"), BadObject)


def test_a_list_of_copied_kinds_keeps_the_bytes_of_the_readable_ones():
    listed, raw = decode_list_with_raw(Pod, pod_list(pod("a"), pod("b", **BAD_PORT), pod("c", unknown=1)))
    assert [item.metadata.name for item in listed.items] == ["a", "c"]
    assert [bad.name for bad in listed.bad] == ["b"]
    assert [json.loads(text) for text in raw] == [pod("a"), pod("c", unknown=1)]
    assert decode_list_with_raw(Pod, b"{}")[0].problem == "items: expected a list, got none"


@pytest.mark.parametrize(
    ("time", "problem"),
    [
        (5, "spec.renewTime: Expected `datetime`, got `int`"),
        ("2026-01-01T00:00:00.000000", "spec.renewTime: Expected `datetime` with a timezone component"),
        ("0001-01-01T00:00:00+14:00", "spec.renewTime: date value out of range"),
    ],
)
def test_a_bad_micro_time_is_reported(time: Any, problem: str):
    found = decode_object(Lease, json.dumps({"spec": {"renewTime": time}}).encode())
    assert isinstance(found, BadObject)
    assert found.problem == problem


@given(struct=st.sampled_from(KINDS_TO_TRY), value=JSON)
@settings(max_examples=300, deadline=None)
def test_any_json_decodes_or_is_reported(struct: type[WireObject], value: Any):
    data = json.dumps(value).encode()
    decoded = decode_object(struct, data)
    assert isinstance(decoded, struct | BadObject)
    assert isinstance(convert_object(struct, value), struct | BadObject)
    listed = decode_list(struct, b'{"kind": "List", "items": [' + data + b"]}")
    assert len(listed.items) + len(listed.bad) == 1 or listed.problem
    if isinstance(decoded, struct):
        assert decode_object(struct, encode_object(decoded)) == decoded


@given(data=st.binary(max_size=200) | st.text('{}[],:"\\abc01 ', max_size=60).map(str.encode))
@settings(max_examples=300, deadline=None)
def test_any_bytes_decode_or_are_reported(data: bytes):
    assert isinstance(decode_object(Pod, data), Pod | BadObject)
    assert isinstance(decode_list(Pod, data), DecodedList)
    assert isinstance(decode_list(Pod, b'{"items": [' + data + b"]}"), DecodedList)
