"""No object, however odd, spoils a table."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.presentation import MediaForm, encode, encode_event, encode_list, encode_object, negotiate
from plimsoll.local.apiserver.status_errors import StatusError
from plimsoll.objects.codec import yaml as yaml_text
from tests.local.apiserver.presentation.recordings import CATALOGUE, NOW, custom_resources, golden

TABLE = MediaForm(kind="table")
RESOURCES = list(CATALOGUE)
WIDGETS = custom_resources(golden("crd")["crd-001"]["body"])[0]

# Names that rows look for, so that odd values get where they are read.
FIELDS = (
    "metadata",
    "spec",
    "status",
    "name",
    "labels",
    "annotations",
    "creationTimestamp",
    "deletionTimestamp",
    "ownerReferences",
    "template",
    "selector",
    "matchLabels",
    "matchExpressions",
    "key",
    "operator",
    "values",
    "containers",
    "initContainers",
    "containerStatuses",
    "initContainerStatuses",
    "state",
    "lastState",
    "terminated",
    "waiting",
    "running",
    "reason",
    "restartCount",
    "conditions",
    "type",
    "ready",
    "replicas",
    "phase",
    "subsets",
    "addresses",
    "ports",
    "port",
    "endpoints",
    "data",
    "series",
    "involvedObject",
    "regarding",
    "subjects",
    "roleRef",
    "hard",
    "used",
    "capacity",
    "storage",
    "metrics",
    "resource",
    "target",
    "claimRef",
    "accessModes",
    "loadBalancer",
    "ingress",
    "clusterIPs",
    "externalIPs",
    "nodeInfo",
    "req",
)
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**63), max_value=2**63 - 1),
    st.floats(allow_nan=False, allow_infinity=False),
    st.text(max_size=8),
    st.sampled_from(["True", "In", "Pod", "ClusterIP", "LoadBalancer", "2026-01-01T00:00:00Z", "9999-12-31T23:59:59Z"]),
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=25,
)
OBJECTS = st.dictionaries(st.sampled_from(FIELDS), VALUES, max_size=5)


@settings(max_examples=150, deadline=None)
@given(st.sampled_from(RESOURCES), OBJECTS)
def test_any_object_of_any_kind_is_a_row(resource: Any, obj: dict[str, Any]):
    shown = json.loads(encode_list(TABLE, [obj], {}, resource, now=NOW))
    assert [len(row["cells"]) for row in shown["rows"]] == [len(shown["columnDefinitions"])]


@settings(max_examples=100, deadline=None)
@given(OBJECTS)
def test_any_custom_object_is_a_row(obj: dict[str, Any]):
    shown = json.loads(encode_list(TABLE, [obj], {}, WIDGETS, now=NOW))
    assert [len(row["cells"]) for row in shown["rows"]] == [len(shown["columnDefinitions"])]


@pytest.mark.parametrize("resource", RESOURCES, ids=lambda item: item.full_name)
def test_a_bookmark_is_a_row(resource: Any):
    bookmark = {"kind": resource.kind, "metadata": {"resourceVersion": "7"}}
    event = json.loads(encode_event(TABLE, "BOOKMARK", bookmark, resource, now=NOW, with_columns=True))
    assert event["object"]["metadata"] == {"resourceVersion": "7"}
    assert len(event["object"]["rows"]) == 1


def test_an_error_in_a_watch_stays_a_status():
    status = {"kind": "Status", "apiVersion": "v1", "code": 410}
    event = encode_event(TABLE, "ERROR", status, RESOURCES[1], now=NOW, with_columns=True)
    assert json.loads(event) == {"type": "ERROR", "object": status}


def test_a_status_in_place_of_an_object_stays_a_status():
    status = {"kind": "Status", "apiVersion": "v1", "status": "Success"}
    assert json.loads(encode_object(TABLE, status, RESOURCES[1], now=NOW)) == status


def test_metadata_of_a_list_must_be_asked_as_a_list_and_the_other_way_round():
    pods = CATALOGUE.find("", "v1", "pods")
    assert pods is not None
    with pytest.raises(StatusError, match=r"is a list \(\*core\.PodList\)"):
        encode_list(MediaForm(kind="partial"), [], {}, pods, now=NOW)
    with pytest.raises(StatusError, match=r"is not a list \(\*core\.Pod\)"):
        encode_object(MediaForm(kind="partial", of_list=True), {}, pods, now=NOW)


def column(kind: str, path: str) -> Any:
    """The printer cell of a column over one object."""
    columns = [{"name": "C", "type": kind, "jsonPath": path}]
    version = {"name": "v1", "served": True, "storage": True, "additionalPrinterColumns": columns}
    names = {"plural": "ts", "kind": "T"}
    definition = {"spec": {"group": "t.io", "scope": "Namespaced", "names": names, "versions": [version]}}
    spec = {"i": 5, "f": 2.5, "big": 1e300, "m": {"b": 1, "a": [True, "<"]}, "n": None, "when": "2026-11-15T04:29:00Z"}
    obj = {"metadata": {"name": "x"}, "spec": {**spec, "s": "text", "yes": True}}
    shown = json.loads(encode_object(TABLE, obj, custom_resources(definition)[0], now=NOW))
    return shown["rows"][0]["cells"][1]


@pytest.mark.parametrize(
    ("kind", "path", "cell"),
    [
        ("string", ".spec.s", "text"),
        ("string", ".spec.i", "5"),
        ("string", ".spec.f", "2.5"),
        ("string", ".spec.yes", "true"),
        ("string", ".spec.m", '{"a":[true,"\\u003c"],"b":1}'),
        ("string", ".spec.n", "<no value>"),
        ("string", ".spec.none", None),
        ("integer", ".spec.i", 5),
        ("integer", ".spec.f", 2),
        ("integer", ".spec.big", None),
        ("integer", ".spec.s", None),
        ("integer", ".spec.yes", None),
        ("number", ".spec.f", 2.5),
        ("boolean", ".spec.yes", True),
        ("boolean", ".spec.s", None),
        ("date", ".spec.when", "60s"),
        ("date", ".spec.s", "<invalid>"),
        ("date", ".spec.i", None),
        ("string", "spec..[", None),
    ],
)
def test_a_printer_column(kind: str, path: str, cell: Any):
    assert column(kind, path) == cell


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_yaml_reads_back_as_what_was_written(value: Any):
    text = encode(MediaForm(media="yaml"), {"value": value}).decode()
    assert [found for _, found in yaml_text.load_all(text)] == [{"value": value}]


@pytest.mark.parametrize("text", ["y", "0x1f", "1:30", "2026-01-01", "<<", "null", "~", "1e3", ".inf", "true"])
def test_text_that_would_be_read_as_something_else_is_quoted(text: str):
    assert encode(MediaForm(media="yaml"), text) == f'"{text}"\n'.encode()


def test_lines_are_kept_as_a_block():
    assert encode(MediaForm(media="yaml"), {"a": "one\ntwo\n"}) == b"a: |\n  one\n  two\n"


def test_yaml_of_a_deeply_nested_object_ends():
    deep: Any = {}
    for _ in range(2_000):
        deep = {"d": deep}
    assert encode(MediaForm(media="yaml"), deep).count(b"d:") == 2_000


def test_yaml_tools_can_read_it():
    assert yaml.safe_load(encode(MediaForm(media="yaml"), {"a": [1, {"b": "c"}]})) == {"a": [1, {"b": "c"}]}


def test_the_form_of_a_request_is_what_is_presented():
    request = Request.build("GET", "/api/v1/pods", headers={"Accept": "application/yaml"})
    body = encode_object(negotiate(request, watch=False), {"kind": "Pod"}, RESOURCES[0], now=NOW)
    assert body == b"kind: Pod\n"
