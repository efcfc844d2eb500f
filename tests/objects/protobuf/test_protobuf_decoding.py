"""The generic decoder: zeros, special messages, unknown fields, and bodies that want to hurt."""

from __future__ import annotations

import contextlib
import struct
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.protobuf.decoding import MAGIC, DecodedBody, decode_body
from plimsoll.objects.protobuf.wire import InvalidProtobuf
from tests.objects.protobuf.encoder import body, encoded, field, varint

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

_EXTENSIONS = "k8s.io.apiextensions_apiserver.pkg.apis.apiextensions.v1."


def _decoded(api_version: str, kind: str, value: dict[str, Any]) -> dict[str, Any]:
    group = api_version.rpartition("/")[0].partition(".")[0] or "core"
    name = f"k8s.io.api.{group}.v1.{kind}" if group != "apiextensions" else f"{_EXTENSIONS}{kind}"
    return decode_body(body(api_version, kind, encoded(name, value))).value


def test_zeros_behind_pointers_are_kept_and_others_dropped() -> None:
    value = _decoded("apps/v1", "Deployment", {"spec": {"replicas": 0, "minReadySeconds": 0, "paused": False}})
    assert value["spec"] == {"replicas": 0}


def test_an_empty_storage_class_means_something() -> None:
    claim = {"spec": {"storageClassName": "", "volumeName": ""}}
    assert _decoded("v1", "PersistentVolumeClaim", claim)["spec"] == {"storageClassName": ""}


def test_required_zeros_are_kept() -> None:
    value = _decoded("scheduling.k8s.io/v1", "PriorityClass", {"value": 0, "globalDefault": False, "description": ""})
    assert value == {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "value": 0}


def test_negative_numbers() -> None:
    assert _decoded("scheduling.k8s.io/v1", "PriorityClass", {"value": -5})["value"] == -5


def test_inline_messages_dissolve() -> None:
    volume = {"name": "v", "volumeSource": {"configMap": {"localObjectReference": {"name": "c"}}}}
    pod = _decoded("v1", "Pod", {"spec": {"volumes": [volume]}})
    assert pod["spec"]["volumes"] == [{"name": "v", "configMap": {"name": "c"}}]


def test_empty_structs_are_kept() -> None:
    volume = {"name": "v", "volumeSource": {"emptyDir": {}}}
    pod = _decoded("v1", "Pod", {"spec": {"volumes": [volume]}})
    assert pod["spec"]["volumes"] == [{"name": "v", "emptyDir": {}}]


def test_times() -> None:
    lease = {"spec": {"renewTime": {"seconds": 1_700_000_000, "nanos": 123_456_789}}}
    assert _decoded("coordination.k8s.io/v1", "Lease", lease)["spec"]["renewTime"] == "2023-11-14T22:13:20.123456Z"
    meta = {"metadata": {"deletionTimestamp": {"seconds": 0, "nanos": 0}, "creationTimestamp": {}}}
    assert _decoded("v1", "ConfigMap", meta)["metadata"] == {"deletionTimestamp": "1970-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("sent", "read"),
    [({"type": 0, "intVal": 5}, 5), ({"type": 1, "strVal": "50%"}, "50%"), ({"type": 0, "intVal": 0}, 0)],
)
def test_numbers_or_texts(sent: dict[str, Any], read: Any) -> None:
    budget = {"spec": {"minAvailable": sent}}
    assert _decoded("policy/v1", "PodDisruptionBudget", budget)["spec"]["minAvailable"] == read


def test_bytes_are_base64() -> None:
    entry = field(1, b"k") + field(2, b"\x00\xff")
    assert decode_body(body("v1", "Secret", field(2, entry))).value["data"] == {"k": "AP8="}


def test_a_schema_is_as_in_json() -> None:
    properties = encoded(
        f"{_EXTENSIONS}JSONSchemaProps",
        {"x-kubernetes-list-map-keys": ["name"], "x-kubernetes-preserve-unknown-fields": False, "$ref": "r"},
    )
    minimum = varint(11 << 3 | 1) + struct.pack("<d", 0.0)
    default = field(8, field(1, b'{"a": [1]}'))
    items = field(24, field(1, field(5, b"string")))
    additional = field(30, field(1, 0))
    raw = properties + minimum + default + items + additional
    crd = field(2, field(7, field(1, b"v1") + field(4, field(1, raw))))
    decoded = decode_body(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd)).value
    assert decoded["spec"]["versions"][0]["schema"]["openAPIV3Schema"] == {
        "x-kubernetes-list-map-keys": ["name"],
        "x-kubernetes-preserve-unknown-fields": False,
        "$ref": "r",
        "minimum": 0,
        "default": {"a": [1]},
        "items": {"type": "string"},
        "additionalProperties": False,
    }


def test_repeated_numbers_may_be_packed() -> None:
    context = "k8s.io.api.core.v1.PodSecurityContext"
    packed = field(4, varint(1) + varint(300))
    assert encoded(context, {"supplementalGroups": [1, 300]}) != packed
    for groups in (packed, encoded(context, {"supplementalGroups": [1, 300]})):
        pod = decode_body(body("v1", "Pod", field(2, field(14, groups)))).value
        assert pod["spec"]["securityContext"] == {"supplementalGroups": [1, 300]}


def test_a_message_in_parts_is_one_message() -> None:
    raw = field(1, field(1, b"a")) + field(1, field(3, b"n"))
    assert decode_body(body("v1", "ConfigMap", raw)).value["metadata"] == {"name": "a", "namespace": "n"}


def test_unknown_numbers_are_skipped_and_reported() -> None:
    raw = field(1, field(1, b"a") + field(99, 1)) + field(77, b"x") + varint(78 << 3 | 5) + b"1234"
    decoded = decode_body(body("v1", "ConfigMap", raw))
    assert decoded.value["metadata"] == {"name": "a"}
    assert sorted(decoded.unknown_fields) == ["#77", "#78", "metadata.#99"]


def test_the_url_names_the_kind_if_the_body_does_not() -> None:
    decoded = decode_body(MAGIC + field(2, b""), api_version="v1", kind="ConfigMap")
    assert decoded.value == {"apiVersion": "v1", "kind": "ConfigMap"}


def test_options_are_known_in_every_group() -> None:
    decoded = decode_body(body("policy/v1", "DeleteOptions", field(1, 0)))
    assert decoded.value["gracePeriodSeconds"] == 0


@pytest.mark.parametrize(
    ("sent", "problem"),
    [
        (b"", "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (b'{"kind":"Pod"}', "provided data does not appear to be a protobuf message, expected prefix [107 56 115 0]"),
        (body("v9", "Pod", b""), 'no kind "Pod" is registered for version "v9"'),
        (body("v1", "Frob", b""), 'no kind "Frob" is registered for version "v1"'),
        (body("v1", "ConfigMap", b"\x0a\x05a"), "unexpected EOF"),
        (body("v1", "ConfigMap", b"\x0a"), "unexpected EOF"),
        (body("v1", "ConfigMap", b"\xff" * 20), "proto: integer overflow"),
        (body("v1", "ConfigMap", b"\x0b"), "proto: illegal wireType 3"),
        (
            body("v1", "ConfigMap", b"\x08\x01"),
            "proto: wrong wireType = 0 for field k8s.io.api.core.v1.ConfigMap.metadata",
        ),
        (body("v1", "ConfigMap", b"\x02\x00"), "proto: illegal tag 0 (wire type 2)"),
    ],
)
def test_what_is_not_a_body_is_refused(sent: bytes, problem: str) -> None:
    with pytest.raises(InvalidProtobuf) as error:
        decode_body(sent)
    assert error.value.problem == problem


def test_nesting_is_limited(reviewed: ReviewedSentences) -> None:
    schema = b""
    for _ in range(5_000):
        schema = field(28, schema)
    crd = field(2, field(7, field(4, field(1, schema))))
    with pytest.raises(InvalidProtobuf) as raised:
        decode_body(body("apiextensions.k8s.io/v1", "CustomResourceDefinition", crd))
    reviewed(str(raised.value))


def test_a_message_in_very_many_parts_is_read_in_one_pass() -> None:
    raw = field(1, field(1, b"a")) * 200_000
    assert decode_body(body("v1", "ConfigMap", raw)).value["metadata"] == {"name": "a"}


def test_embedded_json_must_be_json(reviewed: ReviewedSentences) -> None:
    with pytest.raises(InvalidProtobuf) as raised:
        decode_body(body("apps/v1", "ControllerRevision", field(2, field(1, b"{"))))
    reviewed(str(raised.value))


def test_times_beyond_the_calendar_are_refused(reviewed: ReviewedSentences) -> None:
    with pytest.raises(InvalidProtobuf) as raised:
        _decoded("v1", "ConfigMap", {"metadata": {"deletionTimestamp": {"seconds": 2**62}}})
    reviewed(str(raised.value))


_KINDS = st.sampled_from(
    [
        ("v1", "Pod"),
        ("apps/v1", "Deployment"),
        ("apiextensions.k8s.io/v1", "CustomResourceDefinition"),
        ("coordination.k8s.io/v1", "Lease"),
        ("authorization.k8s.io/v1", "SubjectAccessReview"),
    ]
)


def _survives(data: bytes) -> None:
    """Anything but the one exception fails the test by itself."""
    with contextlib.suppress(InvalidProtobuf):
        assert isinstance(decode_body(data), DecodedBody)


@settings(max_examples=300, deadline=None)
@given(_KINDS, st.binary(max_size=200))
def test_random_bytes_give_an_object_or_a_clear_refusal(kind: tuple[str, str], raw: bytes) -> None:
    _survives(body(*kind, raw))
    _survives(MAGIC + raw)


_PARTS = st.recursive(
    st.tuples(st.integers(1, 45), st.integers(0, 2**64 - 1) | st.binary(max_size=8)).map(lambda parts: field(*parts)),
    lambda inner: st.tuples(st.integers(1, 45), st.lists(inner, max_size=4).map(b"".join)).map(
        lambda parts: field(*parts)
    ),
    max_leaves=10,
)


@settings(max_examples=300, deadline=None)
@given(_KINDS, _PARTS)
def test_well_formed_nonsense_gives_an_object_or_a_clear_refusal(kind: tuple[str, str], raw: bytes) -> None:
    _survives(body(*kind, raw))


_TEXT = st.text(max_size=5).filter(bool)


@settings(max_examples=100, deadline=None)
@given(_TEXT, st.dictionaries(_TEXT, _TEXT, max_size=3), st.lists(_TEXT, max_size=3), st.integers(0, 2**31 - 1))
def test_what_was_encoded_is_decoded(name: str, labels: dict[str, str], args: list[str], replicas: int) -> None:
    metadata: dict[str, Any] = {"name": name, **({"labels": labels} if labels else {})}
    container = {"name": name, **({"args": args} if args else {})}
    spec = {"replicas": replicas, "template": {"metadata": metadata, "spec": {"containers": [container]}}}
    value = _decoded("apps/v1", "Deployment", {"metadata": metadata, "spec": spec})
    assert value == {"apiVersion": "apps/v1", "kind": "Deployment", "metadata": metadata, "spec": spec}
