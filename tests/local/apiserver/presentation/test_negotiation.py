"""Which form an Accept header asks for."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.presentation import MediaForm, encode_error, negotiate
from plimsoll.local.apiserver.presentation.negotiation import parse_clauses
from plimsoll.local.apiserver.status_errors import StatusError, not_found

TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
PARTIAL = "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"
KNOWN = "application/json, application/yaml, application/vnd.kubernetes.protobuf"


def form_of(accept: str, url: str = "/api/v1/pods", *, watch: bool = False, agent: str = "kubectl/1.34") -> MediaForm:
    return negotiate(Request.build("GET", url, headers={"Accept": accept, "User-Agent": agent}), watch=watch)


def refused(accept: str, *, watch: bool = False, custom: bool = False) -> str:
    request = Request.build("GET", "/api/v1/pods", headers={"Accept": accept})
    with pytest.raises(StatusError) as refusal:
        negotiate(request, watch=watch, custom=custom)
    assert refusal.value.code == 406
    assert refusal.value.status["reason"] == "NotAcceptable"
    return str(refusal.value)


@pytest.mark.parametrize(
    "accept",
    [
        "",
        "*/*",
        "application/json",
        "application/json, */*",
        "application/vnd.kubernetes.protobuf,application/json",
        "application/yaml;q=0.5,application/json",
        "text/html,application/json;q=0.1",
        "application/json;charset=utf-8",
    ],
)
def test_plain_json(accept: str):
    assert form_of(accept).is_plain


def test_quality_decides_before_order():
    assert form_of("application/json;q=0.5,application/yaml").media == "yaml"


def test_a_specific_type_goes_before_a_wildcard():
    assert form_of("*/*,application/yaml").media == "yaml"


def test_a_table_is_taken_where_it_stands_first():
    assert form_of(f"{TABLE},application/json").kind == "table"
    assert form_of(f"application/json,{TABLE}").kind == "object"


def test_a_table_in_yaml():
    form = form_of("application/yaml;as=Table;v=v1;g=meta.k8s.io")
    assert (form.kind, form.media) == ("table", "yaml")


def test_metadata_of_an_object_and_of_a_list():
    assert (form_of(PARTIAL).kind, form_of(PARTIAL).of_list) == ("partial", False)
    assert form_of(PARTIAL.replace("Metadata;", "MetadataList;")).of_list


@pytest.mark.parametrize(
    "accept",
    [
        "application/json;as=Table;v=v1;g=example.com",
        "application/json;as=Table;v=v2;g=meta.k8s.io",
        "application/json;as=Table",
        "application/json;v=v1",
        "application/json;stream=other",
        "application/vnd.kubernetes.protobuf;as=Table;v=v1;g=meta.k8s.io",
    ],
)
def test_a_form_we_do_not_have_is_refused(accept: str):
    assert refused(accept) == f"only the following media types are accepted: {KNOWN}"


def test_a_form_we_do_not_have_gives_way_to_the_next():
    assert form_of("application/json;as=Foo;v=v1;g=meta.k8s.io,application/json").is_plain


def test_an_unknown_media_type_of_a_built_in_list_names_what_can_be_streamed():
    streamed = "application/json;stream=watch, application/vnd.kubernetes.protobuf;stream=watch"
    expected = f"406: Not Acceptable\n\nAvailable representations: {KNOWN}, {streamed}"
    assert refused("text/html", watch=True) == expected


def test_custom_resources_refuse_an_unknown_media_type_in_other_words():
    assert refused("text/html", custom=True) == f"only the following media types are accepted: {KNOWN}"


def test_a_lone_star_is_known_to_custom_resources_only():
    request = Request.build("GET", "/apis/ex.com/v1/widgets", headers={"Accept": "*"})
    assert negotiate(request, watch=False, custom=True).is_plain
    assert refused("*").startswith("406: Not Acceptable")


def test_a_watch_may_ask_for_a_stream():
    assert form_of("application/json;stream=watch", watch=True).is_plain


def test_only_protobuf_is_refused_and_not_offered():
    accepted = "only the following media types are accepted: application/json, application/yaml"
    assert refused("application/vnd.kubernetes.protobuf") == accepted


@pytest.mark.parametrize(("asked", "expected"), [("true", True), ("1", True), ("false", False), ("yes", False)])
def test_pretty_is_a_go_boolean(asked: str, expected: bool):
    assert form_of("application/json", f"/api/v1/pods?pretty={asked}").pretty is expected


def test_people_at_a_terminal_get_pretty_json_without_asking():
    assert form_of("*/*", agent="curl/8.5.0").pretty
    assert not form_of("*/*", "/api/v1/pods?pretty=0", agent="curl/8.5.0").pretty


def test_include_object_matters_to_tables_only():
    assert form_of("application/json", "/api/v1/pods?includeObject=Foo").is_plain
    assert form_of(TABLE, "/api/v1/pods?includeObject=").include_object == "Metadata"


def test_an_error_is_never_a_table():
    request = Request.build("GET", "/api/v1/namespaces/n/pods/x", headers={"Accept": TABLE})
    answer = encode_error(request, not_found("x", group="", resource="pods"))
    assert (answer.status, answer.content_type) == (404, "application/json")
    assert isinstance(answer.body, bytes)
    assert answer.body.startswith(b'{"kind":"Status"')


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="application/jsonyamlq=0.19;,*as Table-v1+x", max_size=200))
def test_any_header_gives_a_form_or_a_refusal(accept: str):
    request = Request.build("GET", "/api/v1/pods", headers={"Accept": accept})
    with contextlib.suppress(StatusError):
        assert negotiate(request, watch=False).media in {"json", "yaml"}


def test_a_header_of_a_million_clauses_is_cut():
    assert len(parse_clauses("application/json," * 1_000_000)) < 2_000
