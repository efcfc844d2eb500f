"""Objects that are decoded and defaulted already, as the API server has them: judged and changed in place alike."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.builtin import api
from plimsoll.objects.builtin.decoding import decode, openapi
from plimsoll.objects.builtin.defaults import defaults
from plimsoll.objects.schema.json_values import copy
from tests.objects.builtin.recordings import creations, recorded

Json = dict[str, Any]

_BODIES = {
    id_: case["body"]
    for status in (201, 422)
    for id_, case in ((id_, recorded("create")[id_]) for id_ in creations("create", status))
    if api.is_builtin(case["body"].get("apiVersion"), case["body"].get("kind"))
    and not api.check_create(case["body"]).decode_problems
}


def decoded(body: Json) -> Json:
    component = openapi.find_schema_name(body["apiVersion"], body["kind"])
    assert component is not None
    return decode.decode(copy(body), component).value


@pytest.mark.parametrize("id_", _BODIES)
def test_a_prepared_object_is_judged_as_the_file_it_came_from(id_: str):
    body = _BODIES[id_]
    errors = api.validate_create(defaults.copy_prepared_for_create(decoded(body)))
    assert errors == api.check_create(body).errors


@pytest.mark.parametrize("id_", _BODIES)
def test_a_defaulted_object_is_written_over_another_as_the_files_would_be(id_: str):
    body = _BODIES[id_]
    new = {**body, "metadata": {**body.get("metadata", {}), "labels": {"not a label": "x"}}}
    errors = api.validate_update(defaults.copy_with_defaults(decoded(new)), defaults.copy_with_defaults(decoded(body)))
    assert errors == api.check_update(new, body).errors


@pytest.mark.parametrize("id_", _BODIES)
def test_filling_in_place_gives_what_the_copy_gets(id_: str):
    body = decoded(_BODIES[id_])
    before = copy(body)
    whole = defaults.copy_spelled_out(defaults.copy_prepared_for_create(body))
    assert body == before
    defaults.prepare_for_create(body)
    defaults.write_out_empty_fields(body)
    assert body == whole


@pytest.mark.parametrize("id_", _BODIES)
def test_what_was_prepared_once_stays_as_it_is(id_: str):
    body = decoded(_BODIES[id_])
    defaults.prepare_for_create(body)
    again = copy(body)
    defaults.prepare_for_create(again)
    assert again == body


def test_unrecorded_versions_are_not_known():
    assert not openapi.is_known("made.up/v1", "Pod")
