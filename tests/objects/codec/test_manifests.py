from __future__ import annotations

import json
import math
import textwrap
from typing import TYPE_CHECKING

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.pretty import pretty_repr

from plimsoll.core.errors import UnreadableDocument
from plimsoll.core.plans import Ref
from plimsoll.objects.codec.manifests import read_documents, read_manifests
from plimsoll.objects.codec.yaml import dump, load_all

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences


def read(text: str | bytes) -> list[object]:
    data = text.encode() if isinstance(text, str) else text
    return [document for _, document in read_documents(data, source="f.yaml")]


@pytest.mark.parametrize(
    ("plain", "meant"),
    [
        ("y", True),
        ("N", False),
        ("off", False),
        ("True", True),
        ("tRue", "tRue"),
        ("null", None),
        ("~", None),
        ("12", 12),
        ("-3", -3),
        ("0777", 511),
        ("0o17", 15),
        ("0x1F", 31),
        ("0b11", 3),
        ("1_000", 1000),
        ("09", 9.0),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        ("1:30", "1:30"),
        ("2026-01-02", "2026-01-02"),
        ("2026-01-02T03:04:05Z", "2026-01-02T03:04:05Z"),
        ("500m", "500m"),
        ("1Gi", "1Gi"),
        ("+", "+"),
        ("-", None),
        ("'y'", "y"),
        ('"12"', "12"),
        ("!!str 12", "12"),
        ("!!int '7'", 7),
        ("!!bool 'on'", True),
        ("!!binary aGk=", "hi"),
    ],
)
def test_scalars_mean_what_they_mean_to_kubernetes(plain: str, meant: object):
    expected = [None] if plain == "-" else meant
    assert read(f"a: {plain}" if plain != "-" else "a:\n -") == [{"a": expected}]


@pytest.mark.parametrize(("key", "as_text"), [("y", "true"), ("8080", "8080"), ("1.5", "1.5"), ("'n'", "n")])
def test_keys_become_text(key: str, as_text: str):
    assert read(f"{key}: 1") == [{as_text: 1}]


def test_anchors_aliases_and_merges():
    text = "base: &b {a: 1, b: 2}\nuse: *b\nmore: {<<: *b, b: 3}\nboth: {<<: [{c: 1}, *b]}"
    assert read(text) == [
        {"base": {"a": 1, "b": 2}, "use": {"a": 1, "b": 2}, "more": {"a": 1, "b": 3}, "both": {"c": 1, "a": 1, "b": 2}}
    ]


def test_documents_come_with_their_lines_and_empty_ones_are_left_out():
    assert list(load_all("---\n---\na: 1\n---\n# nothing\n---\nb: 2\n")) == [(2, {"a": 1}), (6, {"b": 2})]


def test_json_is_read_as_json_and_flow_yaml_as_yaml():
    assert read('{"a": "y", "b": 1e2}') == [{"a": "y", "b": 100.0}]
    assert read("{a: y}") == [{"a": True}]
    assert read("\ufeff[1]".encode()) == [[1]]


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("a: 1\na: 2", r'f\.yaml: line 2, column 1: key "a" occurs twice'),
        ('{"a": 1, "a": 2}', 'key "a" occurs twice'),
        ("a: [1", "line 2, column 1: did not find expected"),
        ("a: .nan", "line 1, column 4: .nan is a number that JSON"),
        ('{"a": NaN}', "NaN is not JSON"),
        ('{"a": 1e400}', "1e400 is too large"),
        ("a: 1e400", "1e400 is too large"),
        ('{"a": ' + "9" * 5000 + "}", "(?i)digits|number"),
        ("a: *nobody", "alias .nobody has no anchor"),
        ("a: &x [*x]", "alias .x has no anchor"),
        ("a: !!python/object:os.system x", "is not known"),
        ("a: {{ x }}", "a key must be a plain value"),
        ("~: 1", "must not be null"),
        ("<<: 1", "merges a mapping"),
        ("!!int x: 1", "is no !!int"),
        ("[" * 100_000, "nested deeper"),
        ("a: " + "[" * 100_000, "nested deeper"),
        ('{"a":' * 100_000, "nested deeper"),
        (b"a: \xff", "not UTF-8 at byte 3"),
        ("\tx: 1", "line 1"),
    ],
)
def test_what_cannot_be_read_is_refused_with_place_and_reason(text: str | bytes, complaint: str):
    with pytest.raises(UnreadableDocument, match=complaint):
        read(text)


def test_an_alias_to_something_deep_is_counted_without_recursion():
    deep = "[" * 480 + "]" * 480
    (document,) = read(f"a: &deep {deep}\nb: *deep")
    assert document["a"] == document["b"]  # type: ignore[index]  # a plain dict


def test_a_bomb_of_aliases_is_counted_not_built(reviewed: ReviewedSentences):
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    lines += [f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 10)}]" for i in range(1, 12)]
    with pytest.raises(UnreadableDocument) as raised:
        read("\n".join(lines))
    reviewed(str(raised.value))


def test_lists_are_taken_apart_and_items_of_typed_lists_know_their_kind():
    pods = {"apiVersion": "v1", "kind": "PodList", "items": [{"metadata": {"name": "a", "namespace": "n"}}]}
    plain = {"apiVersion": "v1", "kind": "List", "items": [{"apiVersion": "v1", "kind": "Node"}]}
    found = read_manifests(json.dumps({"apiVersion": "v1", "kind": "List", "items": [pods]}).encode(), source="x")
    assert [manifest.kind for manifest in found] == ["Pod"]
    found = read_manifests((json.dumps(pods) + "\n").encode(), source="x")
    assert [manifest.ref for manifest in found] == [Ref(kind="Pod", namespace="n", name="a")]
    assert [read_manifest.kind for read_manifest in read_manifests(json.dumps(plain).encode(), source="x")] == ["Node"]


def test_json_values_may_follow_each_other():
    found = read_manifests(b'{"kind": "A"}\n\n{"kind": "B"} {"kind": "List", "items": null}\n', source="x")
    assert [(manifest.kind, manifest.line) for manifest in found] == [("A", 1), ("B", 3)]


def test_a_manifest_does_not_print_its_body():
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "s"}, "stringData": {"k": "hush"}}
    (manifest,) = read_manifests(json.dumps(secret).encode(), source="x")
    assert repr(manifest) == "Manifest(Secret/s, x:1)"
    assert "hush" not in pretty_repr(manifest)


@pytest.mark.parametrize("text", ["- 1", "12", "text", '{"kind": "List", "items": [1]}'])
def test_what_is_no_object_is_refused(text: str, reviewed: ReviewedSentences):
    with pytest.raises(UnreadableDocument) as raised:
        read_manifests(text.encode(), source="x")
    reviewed(str(raised.value))


JSON_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**63)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)


@given(JSON_VALUES)
def test_any_json_is_read_as_itself(value: object):
    if isinstance(value, dict | list):
        assert read(json.dumps(value)) == [value]


@given(JSON_VALUES)
def test_what_is_written_as_yaml_reads_back_the_same(value: object):
    assert read(f"a:\n{textwrap.indent(dump([value]), '  ')}") == [{"a": [value]}]


@pytest.mark.parametrize(
    "text", ["y", "N", "1e3", "0x1F", ".inf", "null", "~", "", "on", "1_0", "+1", "a\x85b", "a\u2028b", "\ufeff"]
)
def test_texts_that_look_like_something_else_are_quoted(text: str):
    assert read(dump({"a": text})) == [{"a": text}]


@given(st.text(alphabet="ab:-[]{}&*<!'\"|> \n#,y01.~?%@\t", max_size=40))
@settings(max_examples=300)
def test_any_text_is_read_or_refused(text: str):
    try:
        found = read(text)
    except UnreadableDocument as error:
        problem = str(error)
    else:
        assert json.loads(json.dumps(found)) == found
        return
    assert problem.startswith("f.yaml: ")


def test_in_files_of_our_own_single_letters_are_names():
    text = b"a: Y\nb: n\nc: yes\nY: 1\n"
    ((_, ours),) = read_documents(text, source="f", letters_are_text=True)
    ((_, kubernetes),) = read_documents(text, source="f")
    assert ours == {"a": "Y", "b": "n", "c": True, "Y": 1}
    assert kubernetes["a"] is True
    assert kubernetes["b"] is False


def test_odd_numbers_are_kept_on_demand():
    for text in (b"[.nan, -.inf, .5]", b"- .nan\n- -.inf\n- .5\n", b"[NaN, -Infinity, 0.5]"):
        ((_, found),) = read_documents(text, source="f", odd_numbers=True)
        assert math.isnan(found[0])
        assert found[1:] == [-math.inf, 0.5]
        with pytest.raises(UnreadableDocument):
            list(read_documents(text, source="f"))
