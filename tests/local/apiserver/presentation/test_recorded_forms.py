"""Recorded answers in other forms than plain JSON, and tables of custom resources."""

from __future__ import annotations

import json
from datetime import datetime, timedelta
from typing import Any

import pytest

from plimsoll.local.apiserver.presentation import encode_error, encode_list, encode_object, negotiate
from plimsoll.local.apiserver.status_errors import StatusError
from tests.local.apiserver.presentation.recordings import NOW, custom_resources, golden, recorded_request, served

Json = dict[str, Any]

READ = golden("read")


def test_a_list_in_yaml_names_the_kind_once():
    line = READ["read-075"]
    item = READ["read-001"]["response"]
    version = line["response"].rsplit('resourceVersion: "', 1)[1].split('"')[0]
    form = negotiate(recorded_request(line), watch=False)
    body = encode_list(form, [item], {"resourceVersion": version}, served(line["path"]), now=NOW)
    assert form.content_type == line["response_headers"]["Content-Type"]
    assert body.decode() == line["response"]


def test_pretty_json_is_indented():
    line = READ["read-002"]
    form = negotiate(recorded_request(line), watch=False)
    body = encode_object(form, line["response"], served(line["path"]), now=NOW)
    assert body.startswith(b'{\n  "kind": "ConfigMap",\n  "apiVersion": "v1",\n')
    assert json.loads(body) == line["response"]


def test_anything_will_do_is_json():
    assert negotiate(recorded_request(READ["read-076"]), watch=False).is_plain


def test_an_unknown_media_type_is_refused_before_parameters_are_looked_at():
    line = READ["read-077"]
    with pytest.raises(StatusError) as refused:
        negotiate(recorded_request(line), watch=False)
    assert refused.value.status == line["response"]


def test_json_is_preferred_where_protobuf_is_wanted_less():
    assert negotiate(recorded_request(READ["read-078"]), watch=False).is_plain


def test_a_watch_in_yaml_is_refused_in_yaml():
    line = golden("watch")["watch-022"]
    request = recorded_request(line)
    with pytest.raises(StatusError) as refused:
        negotiate(request, watch=True)
    answer = encode_error(request, refused.value)
    assert (answer.status, answer.content_type) == (406, "application/yaml")
    assert isinstance(answer.body, bytes)
    assert answer.body.decode() == line["response"]


def test_a_custom_resource_with_printer_columns():
    lines = golden("crd")
    line = lines["crd-067"]
    widgets = custom_resources(lines["crd-001"]["response"])[0]
    contents: dict[str, Json] = {
        "a": {"spec": {"req": "r3", "replicas": 6}, "status": {"ready": True}},
        "b": {"spec": {"req": "r", "replicas": 1}},
        "nospec": {},
    }
    metadata = [row["object"]["metadata"] for row in line["response"]["rows"]]
    objects = [{"metadata": item, **contents[item["name"]]} for item in metadata]
    now = datetime.fromisoformat(metadata[0]["creationTimestamp"]) + timedelta(seconds=1)
    form = negotiate(recorded_request(line), watch=False, custom=True)
    body = encode_list(form, objects, line["response"]["metadata"], widgets, now=now)
    assert json.loads(body) == line["response"]


def test_a_custom_resource_without_printer_columns_has_name_and_age():
    line = golden("provisioningrequest")["provisioningrequest-033"]
    definition = golden("provisioningrequest")["provisioningrequest-001"]["body"]
    metadata = [row["object"]["metadata"] for row in line["response"]["rows"]]
    now = datetime.fromisoformat(metadata[0]["creationTimestamp"])
    form = negotiate(recorded_request(line), watch=False, custom=True)
    objects = [{"metadata": item} for item in metadata]
    body = encode_list(form, objects, line["response"]["metadata"], custom_resources(definition)[0], now=now)
    assert json.loads(body) == line["response"]
