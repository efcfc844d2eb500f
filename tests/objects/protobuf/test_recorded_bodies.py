"""Every protobuf body that a real kubectl sent, beside the object that a real server stored."""

from __future__ import annotations

import base64
import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.objects.protobuf.decoding import decode_body
from plimsoll.objects.protobuf.messages import find_message

_FIXTURES = Path(__file__).parents[2] / "fixtures/kubernetes/kubectl"
# What the server answers with instead of what was sent.
_ANSWERED = {
    "140-protobuf-auth-can-i": {"status"},
    "141-protobuf-auth-can-i-list": {"spec", "status"},
    "142-protobuf-auth-whoami": {"status"},
    "143-protobuf-create-token": {"status"},
}
_REFUSED = {"145-protobuf-create-configmap-exists"}


def _requests() -> list[Any]:
    found = []
    for file in sorted(_FIXTURES.glob("*-protobuf-*.json")):
        recording = json.loads(file.read_text())
        sent = [request for request in recording["requests"] if "body_base64" in request]
        found += [pytest.param(recording["id"], request, id=recording["id"]) for request in sent]
    return found


def _differences(sent: Any, stored: Any, path: str = "") -> list[str]:
    """Where the stored object does not have what the body carries."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        missing = [f"{path}.{key}" for key in sent if key not in stored]
        common = [key for key in sent if key in stored]
        return missing + [
            difference for key in common for difference in _differences(sent[key], stored[key], f"{path}.{key}")
        ]
    if isinstance(sent, list) and isinstance(stored, list) and len(sent) == len(stored):
        pairs = enumerate(zip(sent, stored, strict=True))
        return [difference for index, (a, b) in pairs for difference in _differences(a, b, f"{path}[{index}]")]
    return [] if sent == stored else [path]


def test_there_are_recorded_bodies() -> None:
    assert len(_requests()) >= 20


@pytest.mark.parametrize(("name", "request_"), _requests())
def test_a_body_decodes_to_what_was_stored(name: str, request_: dict[str, Any]) -> None:
    decoded = decode_body(base64.b64decode(request_["body_base64"]))
    assert decoded.unknown_fields == ()
    if name in _REFUSED:
        assert (decoded.kind, decoded.value["data"]) == ("ConfigMap", {"a": "b"})
        return
    sent = {key: value for key, value in decoded.value.items() if key not in _ANSWERED.get(name, set())}
    assert _differences(sent, request_["response"]) == []


def test_every_type_of_the_table_is_in_the_table() -> None:
    scalars = {"string", "bytes", "bool", "int32", "int64", "double"}
    seen: set[str] = set()
    pending = ["k8s.io.api.core.v1.Pod", "k8s.io.api.apps.v1.Deployment", "k8s.io.api.batch.v1.CronJob"]
    while pending:
        name = pending.pop()
        if name in seen or name in scalars:
            continue
        seen.add(name)
        types = find_message(name)
        assert types is not None, name
        pending += [field_type.type for field_type in types.values()]
    assert len(seen) > 100
