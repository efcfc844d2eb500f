"""Replays what a real Kubernetes 1.34 answered about definitions and custom resources, in order, against the façade."""

from __future__ import annotations

import copy
import re
from typing import Any

import pytest

from plimsoll.objects.schema.field_errors import format_invalid_message
from tests.objects.schema.recordings import Answer, Store, recorded

Json = dict[str, Any]

DISCOVERY = "discovery is the API server's"
DECODING = "the body cannot be decoded or names another version; the API server decodes"
STORE = "existence, resourceVersion and deletion are the store's"
APPLY = "server-side apply is the API server's"
PATCHING = "patch formats and their errors are the API server's"
SCALE = "the scale endpoint is the API server's; its rules are in admission/test_scale.py"
LISTS = "lists, tables and selectors are the API server's"
CONTROLLER = "conditions of a definition are set by a controller"
ROUTING = "routing is the API server's"
STRICT_BUILT_IN = "unknown fields of built-in kinds are found when they are decoded"

LEFT_TO_THE_API_SERVER = {
    "crd-002": CONTROLLER,
    "crd-003": DISCOVERY,
    "crd-004": DISCOVERY,
    "crd-042": DECODING,
    "crd-043": DECODING,
    "crd-045": DECODING,
    "crd-046": STORE,
    "crd-047": STORE,
    "crd-048": STORE,
    "crd-053": PATCHING,
    "crd-056": PATCHING,
    "crd-057": APPLY,
    "crd-058": APPLY,
    "crd-059": APPLY,
    "crd-060": SCALE,
    "crd-061": SCALE,
    "crd-062": SCALE,
    "crd-063": SCALE,
    "crd-064": SCALE,
    "crd-065": LISTS,
    "crd-066": LISTS,
    "crd-067": LISTS,
    "crd-068": STORE,
    "crd-069": STORE,
    "crd-078": STRICT_BUILT_IN,
    "crd-080": CONTROLLER,
    "crd-100": LISTS,
    "crd-101": ROUTING,
    "crd-102": DISCOVERY,
    "crd-103": ROUTING,
    "crd-109": ROUTING,
    "crd-110": ROUTING,
    "crd-112": LISTS,
    "crd-113": LISTS,
    "crd-114": STORE,
    "crd-115": CONTROLLER,
    "crd-116": STORE,
    "crd-117": ROUTING,
    "provisioningrequest-003": CONTROLLER,
    "provisioningrequest-029": APPLY,
    "provisioningrequest-033": LISTS,
}

COVERED = {
    *(f"crd-{number:03d}" for number in range(1, 118)),
    *(f"provisioningrequest-{number:03d}" for number in range(1, 34)),
} - LEFT_TO_THE_API_SERVER.keys()


def test_every_recorded_line_is_covered_or_left_out_with_a_reason():
    everything = {line["id"] for group in ("crd", "provisioningrequest") for line in recorded(group)}

    assert everything == COVERED | LEFT_TO_THE_API_SERVER.keys()


# What the recorder did between lines without recording it.


def _create_cel_object(store: Store) -> None:
    spec = {"im": "x", "im2": "x", "list": ["a1"], "rat": "0123456789"}
    body = {"apiVersion": "ex.com/v1", "kind": "Cel", "metadata": {"name": "a", "namespace": "crd"}, "spec": spec}
    admission = store.compiled["ex.com", "cels"].get_version("v1").admit_create(body)
    assert admission.admitted
    store.objects["cels", "a"] = admission.object


def _tighten_cel_definition(store: Store) -> None:
    crd = copy.deepcopy(store.definitions["cels.ex.com"])
    properties = crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    properties["rat"]["maxLength"] = 3
    properties["list"]["items"]["x-kubernetes-validations"][0]["rule"] = "self.startsWith('zz')"
    store.define(crd)


def _stop_serving_alpha(store: Store) -> None:
    crd = copy.deepcopy(store.definitions["vers.ex.com"])
    crd["spec"]["versions"][0]["served"] = False
    store.define(crd)


UNRECORDED = {
    "crd-083": _create_cel_object,
    "crd-092": _tighten_cel_definition,
    "crd-104": _stop_serving_alpha,
}


@pytest.fixture(scope="module")
def answers() -> dict[str, Answer]:
    """Every covered request's answer; a request that is left out changes nothing."""
    given = {}
    for group in ("crd", "provisioningrequest"):
        store = Store()
        for line in recorded(group):
            if line["id"] in UNRECORDED:
                UNRECORDED[line["id"]](store)
            if line["id"] in COVERED:
                given[line["id"]] = store.answer(line)
    return given


@pytest.mark.parametrize(
    "line",
    [line for group in ("crd", "provisioningrequest") for line in recorded(group) if line["id"] in COVERED],
    ids=lambda line: line["id"],
)
def test_the_answer_is_the_recorded_one(line: Json, answers: dict[str, Answer]):
    answer, expected = answers[line["id"]], line["response"]

    assert answer.status == line["status"], [error.text for error in answer.errors]
    if line["status"] == 400:
        assert answer.body == expected
    elif line["status"] == 422:
        _assert_same_refusal(answer, expected)
    else:
        assert _masked(answer.body) == _masked(expected)
        assert answer.warnings == _warnings(line)


def _assert_same_refusal(answer: Answer, expected: Json) -> None:
    """Errors of custom resources come in the order of a Go map, so they are compared as a set."""
    given = [error.cause for error in answer.errors]
    causes = expected["details"]["causes"]
    assert sorted(given, key=str) == sorted(causes, key=str)
    details = expected["details"]
    ordered = sorted(answer.errors, key=lambda error: causes.index(error.cause))
    message = format_invalid_message(kind=details["kind"], group=details["group"], name=details["name"], errors=ordered)
    assert message == expected["message"]
    if details["kind"] == "CustomResourceDefinition":
        assert given == causes
    else:
        assert answer.body["kind"] == details["kind"]
        assert answer.body["metadata"]["name"] == details["name"]


def _masked(body: Json) -> Json:
    """The object without what a server adds to metadata."""
    kept: tuple[str, ...] = ("name", "namespace", "labels", "annotations", "generation")
    if body["kind"] == "CustomResourceDefinition":
        kept = ("name",)
    metadata = {name: value for name, value in body["metadata"].items() if name in kept}
    return {**body, "metadata": metadata}


def _warnings(line: Json) -> list[str]:
    headers = line["response_headers"].get("Warning") or []
    texts = [re.fullmatch(r'299 - "(.*)"', header) for header in headers]
    return [text[1].replace(r"\"", '"') for text in texts if text]
