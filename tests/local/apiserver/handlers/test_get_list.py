from __future__ import annotations

import base64
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.request.continue_tokens import NEWEST, ContinueToken, decode_token, encode_token
from plimsoll.local.apiserver.status_errors import StatusError
from tests.local.apiserver.builders import ApiServerHarness, config_map, pod


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        yield made


@pytest.fixture
def maps(world: ApiServerHarness) -> str:
    """Five of them, cm-0 to cm-4."""
    url = f"{world.namespace()}/configmaps"
    for number in range(5):
        labels = {"n": str(number), "even": str(number % 2 == 0).lower()}
        world.made(url, config_map(f"cm-{number}", metadata={"labels": labels}))
    return url


def names(body: dict) -> list[str]:
    return [item["metadata"]["name"] for item in body["items"]]


def test_items_of_a_list_do_not_repeat_their_kind(world: ApiServerHarness, maps: str):
    body = world.ask("GET", maps).body
    assert (body["kind"], body["apiVersion"]) == ("ConfigMapList", "v1")
    assert all("kind" not in item and "apiVersion" not in item for item in body["items"])


def test_pages_go_on_where_the_last_one_ended_at_the_same_revision(world: ApiServerHarness, maps: str):
    first = world.ask("GET", f"{maps}?limit=2").body
    assert names(first) == ["cm-0", "cm-1"]
    assert first["metadata"]["remainingItemCount"] == 3
    token = first["metadata"]["continue"]
    padded = token + "=" * (-len(token) % 4)
    content = json.loads(base64.urlsafe_b64decode(padded))
    revision = int(first["metadata"]["resourceVersion"])
    assert content == {"v": "meta.k8s.io/v1", "rv": revision, "start": "/cm-1\0"}
    world.made(maps, config_map("cm-1a"))
    second = world.ask("GET", f"{maps}?limit=20&continue={token}").body
    assert names(second) == ["cm-2", "cm-3", "cm-4"]
    assert second["metadata"] == {"resourceVersion": first["metadata"]["resourceVersion"]}


def test_with_a_selector_the_remaining_items_are_not_counted(world: ApiServerHarness, maps: str):
    metadata = world.ask("GET", f"{maps}?limit=1&labelSelector=even%3Dtrue").body["metadata"]
    assert "continue" in metadata
    assert "remainingItemCount" not in metadata


def test_a_continue_token_that_is_too_old_comes_with_one_that_works(world: ApiServerHarness, maps: str):
    token = world.ask("GET", f"{maps}?limit=2").body["metadata"]["continue"]
    world.ask("DELETE", f"{maps}/cm-3")
    world.server.store.compact(world.server.store.revision)
    reply = world.ask("GET", f"{maps}?limit=2&continue={token}")
    assert (reply.status, reply.body["reason"]) == (410, "Expired")
    again = world.ask("GET", f"{maps}?continue={reply.body['metadata']['continue']}").body
    assert names(again) == ["cm-2", "cm-4"]


@pytest.mark.parametrize(
    ("query", "found"),
    [
        ("labelSelector=even%3Dtrue", ["cm-0", "cm-2", "cm-4"]),
        ("labelSelector=n+in+(1,3)", ["cm-1", "cm-3"]),
        ("fieldSelector=metadata.name%3Dcm-1", ["cm-1"]),
        ("fieldSelector=metadata.name!%3Dcm-1&labelSelector=n+in+(1,3)", ["cm-3"]),
        ("limit=-1", ["cm-0", "cm-1", "cm-2", "cm-3", "cm-4"]),
    ],
)
def test_selectors_choose(world: ApiServerHarness, maps: str, query: str, found: list[str]):
    assert names(world.ask("GET", f"{maps}?{query}").body) == found


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "configmaps?fieldSelector=data.i%3D1",
            '"data.i" is not a known field selector: only "metadata.name", "metadata.namespace"',
        ),
        ("pods?fieldSelector=spec.priority%3D0", "field label not supported: spec.priority"),
        ("configmaps?fieldSelector=x", "invalid selector: 'x'; can't understand 'x'"),
        ("configmaps?labelSelector=%3Dx", "found '=', expected: !, identifier, or 'end of string'"),
        ("configmaps?limit=x", 'strconv.ParseInt: parsing "x": invalid syntax'),
        (
            "configmaps?limit=99999999999999999999",
            'strconv.ParseInt: parsing "99999999999999999999": value out of range',
        ),
        (
            "configmaps?resourceVersion=abc",
            'invalid resource version: resourceVersion: Invalid value: "abc": strconv.ParseUint: parsing "abc":',
        ),
        ("configmaps?continue=e30&resourceVersion=5", "invalid continue token: continue key is not valid: "),
    ],
)
def test_questions_that_cannot_be_asked(world: ApiServerHarness, maps: str, url: str, message: str):
    reply = world.ask("GET", f"/api/v1/namespaces/here/{url}")
    assert reply.status == 400
    assert reply.message.startswith(message)


def test_pods_are_selected_by_their_node_and_phase(world: ApiServerHarness):
    here = world.namespace()
    world.made(f"{here}/pods", pod("bound", node="n"))
    world.made(f"{here}/pods", pod("free"))
    assert names(world.ask("GET", f"{here}/pods?fieldSelector=spec.nodeName%3D").body) == ["free"]
    assert names(world.ask("GET", f"{here}/pods?fieldSelector=spec.nodeName%3Dn,status.phase%3DPending").body) == [
        "bound"
    ]


def test_an_exact_revision_is_shown_as_it_was(world: ApiServerHarness, maps: str):
    then = world.ask("GET", maps).body["metadata"]["resourceVersion"]
    world.ask("DELETE", f"{maps}/cm-0")
    exact = world.ask("GET", f"{maps}?resourceVersion={then}&resourceVersionMatch=Exact").body
    assert names(exact)[0] == "cm-0"
    newer = world.ask("GET", f"{maps}?resourceVersion={then}&resourceVersionMatch=NotOlderThan").body
    assert names(newer)[0] == "cm-1"


def test_a_revision_still_to_come_is_waited_for_and_then_refused(world: ApiServerHarness, maps: str):
    reply = world.ask("GET", f"{maps}?resourceVersion=99999999")
    assert (reply.status, reply.body["details"]["retryAfterSeconds"]) == (504, 1)
    assert reply.message.startswith("Timeout: Too large resource version: 99999999, current: ")
    assert world.run.clock.monotonic_s() >= 3


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("resourceVersionMatch=Exact", "resourceVersionMatch is forbidden unless resourceVersion is provided"),
        ("resourceVersion=1&resourceVersionMatch=Foo", 'Unsupported value: "Foo"'),
        ("resourceVersion=0&resourceVersionMatch=Exact", 'forbidden for resourceVersion "0"'),
        ("sendInitialEvents=true", "sendInitialEvents is forbidden for list"),
    ],
)
def test_options_that_contradict_each_other(world: ApiServerHarness, maps: str, query: str, message: str):
    reply = world.ask("GET", f"{maps}?{query}")
    assert reply.status == 422
    assert message in reply.message


def test_autoscalers_are_an_empty_list(world: ApiServerHarness):
    for version in ("v1", "v2"):
        body = world.ask("GET", f"/apis/autoscaling/{version}/horizontalpodautoscalers").body
        assert (body["apiVersion"], body["items"]) == (f"autoscaling/{version}", [])


@given(st.integers(min_value=1, max_value=2**62) | st.just(NEWEST), st.text(min_size=1).filter(lambda t: t[0] != "/"))
@settings(max_examples=100)
def test_a_continue_token_leads_back_to_its_place(revision: int, start: str):
    place = ContinueToken(revision, start)
    if ".." in start.split("/"):
        with pytest.raises(StatusError):
            decode_token(encode_token(place))
    else:
        assert decode_token(encode_token(place)) == place


@given(st.text())
@settings(max_examples=150)
def test_no_text_breaks_the_reader_of_tokens(text: str):
    with pytest.raises(StatusError) as refusal:
        decode_token(text)
    assert refusal.value.code == 400
