"""The JSON paths of printer columns."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.presentation.json_paths import InvalidJsonPath, JsonPath, parse

OBJECT: dict[str, Any] = {
    "metadata": {"labels": {"app.kubernetes.io/name": "x"}, "name": "n"},
    "spec": {
        "size": 3,
        "ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "b"}, {"port": 3}],
        "hosts": [["a", "b"], ["c"]],
    },
    "status": {
        "conditions": [
            {"type": "Synced", "status": "False", "age": 1},
            {"type": "Ready", "status": "True", "age": 5, "ok": True},
        ]
    },
}

FOUND = [
    (".spec.size", [3]),
    ("{.spec.size}", [3]),
    ("$.spec.size", [3]),
    (".spec.none", []),
    (".spec.size.deeper", []),
    (".spec['size']", [3]),
    ('.spec["size"]', [3]),
    (".spec['size','none']", [3]),
    (".metadata.labels['app.kubernetes.io/name']", ["x"]),
    (r".metadata.labels.app\.kubernetes\.io/name", ["x"]),
    (".spec.ports[0].port", [1]),
    (".spec.ports[-1].port", [3]),
    (".spec.ports[-2].port", [2]),
    (".spec.ports[9].port", []),
    (".spec.ports[0:2].port", [1, 2]),
    (".spec.ports[1:].port", [2, 3]),
    (".spec.ports[::2].port", [1, 3]),
    (".spec.ports[0,2].port", [1, 3]),
    (".spec.ports[*].name", ["a", "b"]),
    (".spec.hosts[*][0]", ["a", "c"]),
    (".metadata.*", [{"app.kubernetes.io/name": "x"}, "n"]),
    ("..port", [1, 2, 3]),
    ('.status.conditions[?(@.type=="Ready")].status', ["True"]),
    (".status.conditions[?(@.type == 'Ready')].status", ["True"]),
    ('.status.conditions[?(@["type"]=="Ready")].status', ["True"]),
    ('.status.conditions[?(@.type!="Ready")].status', ["False"]),
    (".status.conditions[?(@.age>1)].type", ["Ready"]),
    (".status.conditions[?(@.age<=1)].type", ["Synced"]),
    (".status.conditions[?(@.ok==true)].type", ["Ready"]),
    (".status.conditions[?(@.ok)].type", ["Ready"]),
    ('.status.conditions[?(@.none=="x")].type', []),
    ('.status.conditions[?(@.age=="1")].type', []),
    ("", [OBJECT]),
]


@pytest.mark.parametrize(("path", "expected"), FOUND)
def test_a_path_finds(path: str, expected: list[Any]):
    parsed = parse(path)
    assert isinstance(parsed, JsonPath)
    assert parsed.find(OBJECT) == expected


@pytest.mark.parametrize(
    "path",
    ["spec", ".spec[", ".spec[x]", ".spec[?(@.a==)]", ".spec[?(a)]", ".a b", ".spec[0:1:0]", "." * 20_000, ".[?"],
)
def test_what_is_no_path_is_reported_as_none(path: str):
    assert isinstance(parse(path), InvalidJsonPath)


@pytest.mark.parametrize(
    "path",
    [
        "[" * 9_000,
        ".a[" + "'a'," * 2_000,
        "[?(@" + "[1]" * 3_000 + "!",
        "[?(@.a==" + " " * 9_000 + ")",
        "[?('" + "\\'" * 4_000,
        ".." * 4_000,
        "[" + "?(" * 4_000,
    ],
)
def test_hostile_text_is_refused_at_once(path: str):
    assert isinstance(parse(path), InvalidJsonPath)


@settings(max_examples=300, deadline=None)
@given(st.text(alphabet=".[]'\"?(@)=<>!*:,ab01\\ $-", max_size=60))
def test_any_text_is_a_path_or_none_and_evaluates(path: str):
    parsed = parse(path)
    if isinstance(parsed, JsonPath):
        assert isinstance(parsed.find(OBJECT), list)


def test_deep_objects_are_searched_without_recursion():
    deep: Any = {"x": 1}
    for _ in range(50_000):
        deep = {"d": deep}
    parsed = parse("..x")
    assert isinstance(parsed, JsonPath)
    assert parsed.find(deep) == [1]
