"""Whatever is sent: an answer, soon, and never an exception."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.objects.builtin import check_create, check_update, default
from plimsoll.objects.builtin.decoding import openapi
from plimsoll.objects.schema.json_values import MAX_NESTING
from tests.objects.builtin.recordings import a_container, a_pod, a_workload, an_object

Json = dict[str, Any]

KINDS = st.sampled_from(openapi.list_known_kinds())
SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(min_value=-(2**70), max_value=2**70),
    st.integers(min_value=-3, max_value=70000),
    st.floats(),
    st.text(max_size=8),
    st.sampled_from(["", "a", "Always", "1Gi", "25%", "x/y", "../x", "None", "RollingUpdate", "2026-01-01T00:00:00Z"]),
)
ANYTHING = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def shaped(draw: st.DrawFn, schema: Json, depth: int) -> Any:
    """A value that mostly follows a schema, so that it gets past the decoder and into the rules."""
    component = openapi.find_reference(schema)
    if component is not None:
        name = component.rpartition(".")[2]
        if name == "Quantity":
            return draw(st.sampled_from(["0", "-1", "1", "500m", "1Gi", "0.5", "1x"]))
        if name == "IntOrString":
            return draw(st.sampled_from([0, 1, -1, 80, "25%", "0%", "http", "", "x%"]))
        schema = openapi.load_component(component)
    properties = schema.get("properties")
    if properties is not None:
        names = list(properties)
        chosen = draw(st.lists(st.sampled_from(names), max_size=6, unique=True)) if names and depth else []
        return {name: draw(shaped(properties[name], depth - 1)) for name in chosen}
    kind = schema.get("type")
    if kind == "array":
        return draw(st.lists(shaped(schema["items"], depth - 1), max_size=3)) if depth else []
    if kind == "object" and "additionalProperties" in schema:
        keys = st.sampled_from(["cpu", "memory", "a", "A b", "example.com/x", "hugepages-2Mi", "storage"])
        values = shaped(schema["additionalProperties"], depth - 1) if depth else st.just("0")
        return draw(st.dictionaries(keys, values, max_size=3))
    words = [*schema.get("enum", ()), "", "a", "a-b", "B_", "x" * 70, "/a/../b", "10.0.0.1", "aGk="]
    scalars: dict[str | None, st.SearchStrategy[Any]] = {
        "string": st.sampled_from(words),
        "integer": st.sampled_from([0, 1, -1, 80, 70000, 2**31 - 1]),
        "boolean": st.booleans(),
    }
    return draw(scalars.get(kind, ANYTHING))


@st.composite
def objects(draw: st.DrawFn) -> Json:
    api_version, kind = draw(KINDS)
    component = openapi.find_schema_name(api_version, kind)
    assert component is not None
    body = draw(shaped({"$ref": f"#/components/schemas/{component}"}, 7))
    return {**body, "apiVersion": api_version, "kind": kind}


@settings(max_examples=100, deadline=None)
@given(KINDS, st.dictionaries(st.sampled_from(["metadata", "spec", "status", "data", "rules", "x"]), ANYTHING))
def test_anything_at_all_gets_an_answer(kind: tuple[str, str], body: Json):
    obj = {**body, "apiVersion": kind[0], "kind": kind[1]}
    for error in check_create(obj).errors:
        assert error.text
    check_update(obj, obj)
    default(obj)


@settings(max_examples=50, deadline=None)
@given(objects(), objects())
def test_an_object_of_the_right_shape_gets_an_answer(obj: Json, other: Json):
    for error in check_create(obj).errors:
        assert error.text
    old = {**other, "apiVersion": obj["apiVersion"], "kind": obj["kind"]}
    for error in check_update(obj, old).errors:
        assert error.text


@settings(max_examples=50, deadline=None)
@given(objects())
def test_what_is_good_stays_good_when_its_defaults_are_written_out(obj: Json):
    if check_create(obj).is_good:
        assert check_create(default(obj)).is_good


@settings(max_examples=50, deadline=None)
@given(objects())
def test_an_object_is_never_changed_by_looking_at_it(obj: Json):
    before = repr(obj)
    check_create(obj)
    default(obj)
    assert repr(obj) == before


def test_a_label_map_of_ten_megabytes():
    labels = {f"key-{number}": "!" * 100 for number in range(90_000)}
    pod = a_pod(metadata={"labels": labels})
    assert len(check_create(pod).errors) == 180_000


def test_ten_thousand_containers():
    containers = [
        a_container(name=f"c{number}", volumeMounts=[{"name": "none", "mountPath": "/x"}]) for number in range(10_000)
    ]
    assert len(check_create(a_pod(containers=containers)).errors) == 10_000


def test_ten_thousand_wrong_types_are_not_all_reported():
    assert len(check_create(a_pod(containers=["x"] * 10_000)).decode_problems) == 100


def test_ten_thousand_selector_terms():
    terms = [{"key": f"k{number}", "operator": "In", "values": ["v"]} for number in range(10_000)]
    [error] = check_create(a_workload("Deployment", selector={"matchExpressions": terms})).errors
    assert error.path == "spec.template.metadata.labels"


def test_owners_that_all_claim_control_are_reported_once():
    owner = {"apiVersion": "v1", "kind": "Pod", "name": "p", "uid": "u", "controller": True}
    config = an_object("v1", "ConfigMap")
    config["metadata"]["ownerReferences"] = [owner] * 5_000
    assert len(check_create(config).errors) == 1


def test_nesting_without_end():
    deep: Any = {}
    for _ in range(100_000):
        deep = {"a": deep}
    for field in ("data", "spec", "unknown"):
        verdict = check_create(
            {"apiVersion": "apps/v1", "kind": "ControllerRevision", "metadata": {"name": "x"}, field: deep}
        )
        assert [problem.text for problem in verdict.decode_problems] == [
            f"must not be nested deeper than {MAX_NESTING} levels"
        ]


def test_a_megabyte_where_a_word_is_expected():
    word = "a" * 1_000_000 + "_"
    pod = a_pod(
        metadata={"name": word}, containers=[a_container(name=word, image=word, imagePullPolicy=word)], hostname=word
    )
    assert {error.path for error in check_create(pod).errors} == {
        "metadata.name",
        "spec.containers[0].name",
        "spec.containers[0].imagePullPolicy",
        "spec.hostname",
    }
