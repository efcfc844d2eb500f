"""Writes take shorter ways where the long one could only end the same: here both are gone, and compared."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.request.json import _read_closely, read_json
from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from plimsoll.local.apiserver.strategies.builtin import BuiltinStrategy
from plimsoll.local.apiserver.strategies.interface import Decoded
from tests.local.apiserver.builders import MERGE, STRATEGIC, ApiServerHarness, deployment, pod

if TYPE_CHECKING:
    from collections.abc import Iterator

NOW = datetime(2026, 1, 1, tzinfo=UTC)

_SCALARS = st.none() | st.booleans() | st.integers(-(2**65), 2**65) | st.floats(allow_nan=False) | st.text(max_size=4)
_VALUES = st.recursive(
    _SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=3),
    max_leaves=10,
)


@pytest.fixture
def world() -> Iterator[ApiServerHarness]:
    with ApiServerHarness() as one:
        one.namespace()
        yield one


def strategy(kind: str) -> BuiltinStrategy:
    return BuiltinStrategy(next(resource for resource in list_builtin_resources() if resource.kind == kind))


def made_from_template(**spec: Any) -> dict[str, Any]:
    made = pod(**spec)
    made["metadata"] = {"generateName": "web-", "labels": {"app": "web"}}
    return made


@pytest.mark.parametrize("write", [json.dumps, lambda value: msgspec.json.encode(value).decode("utf-8")])
@settings(max_examples=300, deadline=None)
@example([2**63, -(2**63), 2**64 - 1, 1.0, 1e5, "é"])
@given(value=_VALUES)
def test_plain_text_is_read_as_any_other(write: Any, value: Any):
    try:
        text = write(value).encode()
    except (OverflowError, UnicodeEncodeError):
        return
    assert repr(read_json(text)) == repr(_read_closely(text))


@pytest.mark.parametrize(
    "text",
    [b'{"a":1,"a":1}', b'{"a":{"b":1,"b":2}}', b'{"a":1.0}', b'{"a":18446744073709551615}', b"[" * 200 + b"]" * 200],
)
def test_text_that_needs_a_closer_look_gets_it(text: bytes):
    assert repr(read_json(text)) == repr(_read_closely(text))


@pytest.mark.parametrize(
    "status",
    [
        {"phase": "Running", "podIPs": [{"ip": "10.0.0.1"}], "conditions": [{"type": "Ready", "status": "True"}]},
        {"phase": None, "containerStatuses": [{"name": "c", "state": {"running": {}}, "restartCount": 0}]},
        {"phase": "Running", "unheardOf": 1},
        {"phase": 1},
        {"startTime": "yesterday"},
        "Running",
        [],
        {},
        None,
    ],
)
def test_a_new_status_is_decoded_as_part_of_its_object(world: ApiServerHarness, status: Any):
    before = world.made("/api/v1/namespaces/here/pods", pod())
    pods = strategy("Pod")
    assert pods.decode_changed({**before, "status": status}, before) == pods.decode({**before, "status": status})


@pytest.mark.parametrize("change", [{"spec": {}}, {"metadata": {"name": "p"}}, {"unheardOf": None}, {"unheardOf": 1}])
def test_an_object_that_changed_elsewhere_too_is_decoded_whole(world: ApiServerHarness, change: dict[str, Any]):
    before = world.made("/api/v1/namespaces/here/pods", pod())
    changed = {**before, "status": {"phase": "Failed"}, **change}
    assert strategy("Pod").decode_changed(changed, before) == strategy("Pod").decode(changed)


def test_objects_of_one_template_are_decoded_alike_and_share_nothing():
    pods = strategy("Pod")
    first = pods.decode(made_from_template())
    assert isinstance(first, Decoded)
    expected = msgspec.json.encode(first)
    first.value["spec"]["containers"][0]["image"] = "changed"
    assert msgspec.json.encode(pods.decode(made_from_template())) == expected
    other = pods.decode(made_from_template(restartPolicy="Never"))
    assert isinstance(other, Decoded)
    assert other.value["spec"]["restartPolicy"] == "Never"


def test_objects_of_one_template_are_owned_alike():
    def owned(spec: dict[str, Any], *, ownership: Any) -> Any:
        value = {**made_from_template(**spec), "status": {}}
        return ownership.update(None, value, manager="m", now=NOW)["metadata"]["managedFields"]

    kept = strategy("Pod").get_field_manager("")
    for spec in ({}, {"nodeName": "n"}, {}, {"nodeName": "n"}):
        assert owned(spec, ownership=kept) == owned(spec, ownership=strategy("Pod").get_field_manager(""))


@pytest.mark.parametrize("content", [MERGE, STRATEGIC])
def test_what_comes_with_a_status_is_judged_as_ever(world: ApiServerHarness, content: str):
    world.made("/apis/apps/v1/namespaces/here/deployments", deployment())
    url = "/apis/apps/v1/namespaces/here/deployments/d/status"
    patch = {"metadata": {"annotations": {"no good": "x"}}, "status": {"replicas": 1}}
    refused = world.ask("PATCH", url, patch, content=content)
    assert (refused.status, refused.body["details"]["causes"][0]["field"]) == (422, "metadata.annotations")
    assert world.ask("PATCH", url, {"status": {"replicas": 1}}, content=content).body["status"]["replicas"] == 1


def test_true_is_not_taken_for_one(world: ApiServerHarness):
    """Python thinks them equal, and a patch leaves alone what is equal."""
    world.made("/api/v1/namespaces/here/pods", pod(terminationGracePeriodSeconds=1))
    for content in (MERGE, STRATEGIC):
        patch = {"spec": {"terminationGracePeriodSeconds": True}}
        assert world.ask("PATCH", "/api/v1/namespaces/here/pods/p", patch, content=content).status == 422


PODS = "/api/v1/namespaces/here/pods"


def without_own(made: dict[str, Any]) -> str:
    """A pod's text but for what the server gives each: its names and numbers, and when it was made."""
    text = msgspec.json.encode(made).decode()
    metadata, token = made["metadata"], made["spec"]["volumes"][-1]["name"]
    for own in (metadata["name"], metadata["uid"], metadata["creationTimestamp"], token):
        text = text.replace(own, "")
    return text.replace(f'"resourceVersion":"{metadata["resourceVersion"]}"', "")


def test_pods_of_one_template_are_prepared_alike_each_with_what_is_its_own(world: ApiServerHarness):
    first, second, third = (world.made(PODS, made_from_template()) for _ in range(3))
    assert without_own(first) == without_own(second) == without_own(third)
    for item in (first, second, third):
        mount = item["spec"]["containers"][0]["volumeMounts"][-1]
        assert mount["name"] == item["spec"]["volumes"][-1]["name"]
    names = [{item["metadata"][name] for item in (first, second, third)} for name in ("name", "uid", "resourceVersion")]
    assert [len(name) for name in names] == [3, 3, 3]
    assert len({item["spec"]["volumes"][-1]["name"] for item in (first, second, third)}) == 3


def test_a_change_of_one_pod_does_not_reach_its_siblings(world: ApiServerHarness):
    first = world.made(PODS, made_from_template())
    second = world.made(PODS, made_from_template())
    patch = {"metadata": {"labels": {"app": "other"}}, "spec": {"activeDeadlineSeconds": 5}}
    changed = world.ask("PATCH", f"{PODS}/{second['metadata']['name']}", patch, content=MERGE).body
    assert changed["spec"]["activeDeadlineSeconds"] == 5
    third = world.made(PODS, made_from_template())
    assert without_own(third) == without_own(first)


def test_pods_of_one_template_that_wait_at_a_gate_have_times_of_their_own(world: ApiServerHarness):
    gated = made_from_template(schedulingGates=[{"name": "ex.com/gate"}])
    for _ in range(3):
        made = world.made(PODS, gated)
        assert made["status"]["conditions"][0]["lastTransitionTime"] == made["metadata"]["creationTimestamp"]
        world.run.advance_by(60)


def test_pods_of_one_template_are_refused_alike(world: ApiServerHarness):
    refused = [world.ask("POST", PODS, made_from_template(restartPolicy="Odd")) for _ in range(2)]
    assert [reply.status for reply in refused] == [422, 422]
    assert refused[0].body["details"]["causes"] == refused[1].body["details"]["causes"]


def test_a_volume_under_the_name_of_tokens_is_judged_by_its_own_name(world: ApiServerHarness):
    def asked(volume: str) -> int:
        return world.ask("POST", PODS, made_from_template(volumes=[{"name": volume, "emptyDir": {}}])).status

    assert [asked(f"kube-api-access-{rest}") for rest in ("abcde", "vwxyz", "ABCDE", "a_b")] == [201, 201, 422, 422]
