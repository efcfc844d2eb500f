from __future__ import annotations

import copy
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.codec.decode_problems import BadObject
from plimsoll.objects.codec.decoding import convert_object, decode_list, decode_object
from plimsoll.objects.registry import KINDS
from tests.objects.api.recordings import objects

RECORDED = objects()
MARK = "here"


def places(value: Any) -> list[tuple[dict[str, Any], str]]:
    """Every key of every object inside the value, with its holder; JSON of any shape is not looked into."""
    found: list[tuple[dict[str, Any], str]] = []
    shapeless = {"openAPIV3Schema", *(("data",) if value["kind"] == "ControllerRevision" else ())}
    waiting = [value]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            found += [(one, key) for key in one]
            waiting += [part for key, part in one.items() if key not in shapeless]
        elif isinstance(one, list):
            waiting += one
    return found


@given(name=st.sampled_from(sorted(RECORDED)), chance=st.randoms(use_true_random=False), times=st.integers(1, 3))
@settings(max_examples=150, deadline=None)
def test_null_anywhere_in_a_real_object_is_like_deletion(name: str, chance: Any, times: int):
    value = copy.deepcopy(RECORDED[name])
    resource = KINDS.find_by_kind(value["apiVersion"], value["kind"])
    assert resource
    for _ in range(times):
        holder, key = chance.choice(places(value))
        holder[key] = MARK
    text = json.dumps(value)
    nulled = text.replace(json.dumps(MARK), "null").encode()
    deleted = json.loads(text, object_hook=lambda body: {key: part for key, part in body.items() if part != MARK})
    expected = decode_object(resource.struct, json.dumps(deleted).encode())
    assert not isinstance(expected, BadObject)
    assert decode_object(resource.struct, nulled) == expected
    assert convert_object(resource.struct, json.loads(nulled)) == expected


@pytest.mark.parametrize(
    ("null", "absent"),
    [
        ({"metadata": None}, {}),
        ({"metadata": {"name": None}}, {"metadata": {}}),
        ({"metadata": {"labels": None}}, {"metadata": {}}),
        ({"metadata": {"labels": {"a": None, "b": "c"}}}, {"metadata": {"labels": {"b": "c"}}}),
        ({"spec": {"containers": None}}, {"spec": {}}),
        ({"spec": {"containers": [{"resources": {"limits": {"cpu": None}}}]}}, {"spec": {"containers": [{}]}}),
        ({"spec": {"hostNetwork": None, "priority": None}}, {"spec": {}}),
        ({"kind": None, "apiVersion": None}, {}),
    ],
)
def test_scalars_lists_maps_structs_and_map_values(null: Any, absent: Any):
    found, expected = convert_object(Pod, null), convert_object(Pod, absent)
    assert not isinstance(found, BadObject)
    assert not isinstance(expected, BadObject)
    assert found.metadata == expected.metadata
    assert found.spec.priority == expected.spec.priority
    assert decode_object(Pod, json.dumps(null).encode()) == found


def test_a_null_time_needs_no_second_look(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("plimsoll.objects.codec.decoding.strip_nulls", None)
    found = decode_object(Pod, b'{"metadata": {"name": "a", "creationTimestamp": null}}')
    assert not isinstance(found, BadObject)
    assert found.metadata.creation_timestamp is None
    lease = decode_object(Lease, b'{"spec": {"renewTime": null}}')
    assert not isinstance(lease, BadObject)
    assert lease.spec.renew_time is None


def test_null_in_a_list_is_a_bad_object():
    found = decode_object(Pod, b'{"spec": {"containers": [null]}}')
    assert isinstance(found, BadObject)
    assert found.problem == "spec.containers[0]: Expected `object`, got `null`"


def test_null_inside_json_of_unknown_shape_is_a_value():
    schema = {"type": "object", "nullable": True, "default": None, "enum": [None, 1]}
    version = {"name": "v1", "schema": {"openAPIV3Schema": schema}, "subresources": None}
    value = {"metadata": {"name": None}, "spec": {"versions": [version]}}
    found = decode_object(CustomResourceDefinition, json.dumps(value).encode())
    assert not isinstance(found, BadObject)
    assert found.spec.versions[0].schema
    assert found.spec.versions[0].schema.openapi_v3_schema == schema


def test_null_config_map_values_are_gone():
    found = decode_object(ConfigMap, b'{"data": {"a": null, "b": "1"}, "binaryData": {"c": null}}')
    assert not isinstance(found, BadObject)
    assert found.data == {"b": "1"}
    assert found.binary_data == {}


def test_a_list_of_null_items_is_empty():
    found = decode_list(
        Pod, b'{"kind": "PodList", "metadata": {"resourceVersion": "7", "continue": null}, "items": null}'
    )
    assert found.problem == ""
    assert found.items == ()
    assert found.metadata.resource_version == "7"


def test_a_list_with_null_metadata_keeps_its_items():
    found = decode_list(Pod, b'{"kind": "PodList", "metadata": null, "items": [{"spec": null}]}')
    assert found.problem == ""
    assert len(found.items) == 1
