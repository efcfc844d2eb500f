"""Rules that a real Kubernetes 1.34 has judged: its recorded answers are the expectation."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from plimsoll.objects.cel import (
    BOOL,
    DOUBLE,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    CelCompileError,
    CelOptional,
    CelType,
    CostBudget,
    ListType,
    MapType,
    ObjectType,
    OptionalType,
    StringType,
    compile_expression,
)
from tests.objects.cel.expressions import failure

GOLDEN = Path(__file__).parents[2] / "fixtures" / "kubernetes" / "golden"
REQUEST_BYTES = 3 * 1024 * 1024
COST_LIMIT = 10_000_000


def recorded(group: str) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (GOLDEN / f"{group}.jsonl").read_text(encoding="utf-8").splitlines()]


def declared(schema: dict[str, Any], name: str = "self") -> CelType:
    """A schema's type, with just enough of Kubernetes' size estimates for these recordings."""
    if schema.get("x-kubernetes-int-or-string") or schema.get("x-kubernetes-preserve-unknown-fields"):
        return DYN
    match schema.get("type"):
        case "string":
            if schema.get("format") in {"date", "date-time"}:
                return TIMESTAMP
            return StringType(4 * schema["maxLength"] if "maxLength" in schema else REQUEST_BYTES - 2)
        case "array":
            return ListType(declared(schema["items"], f"{name}.@idx"), schema.get("maxItems", REQUEST_BYTES // 3))
        case "object" if "additionalProperties" in schema:
            value = declared(schema["additionalProperties"], f"{name}.@elem")
            return MapType(STRING, value, schema.get("maxProperties", REQUEST_BYTES // 8))
        case "object":
            fields = {key: declared(of, f"{name}.{key}") for key, of in schema.get("properties", {}).items()}
            return ObjectType(name, fields, frozenset(schema.get("required", ())))
        case other:
            return {"integer": INT, "number": DOUBLE, "boolean": BOOL}.get(str(other), DYN)


def rules(schema: Any, path: str = "") -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Path, schema and rule of every x-kubernetes-validations below."""
    if not isinstance(schema, dict):
        return []
    found = [(path, schema, rule) for rule in schema.get("x-kubernetes-validations", ()) if isinstance(rule, dict)]
    for key, below in schema.items():
        children = below if isinstance(below, list) else [below]
        for child in children:
            found += rules(child, f"{path}.{key}")
    return found


def definitions(group: str, status: set[int]) -> list[dict[str, Any]]:
    return [
        case
        for case in recorded(group)
        if case["method"] == "POST"
        and case["path"].endswith("/customresourcedefinitions")
        and case["status"] in status
        and isinstance(case["body"], dict)
    ]


def variables(schema: dict[str, Any], rule: dict[str, Any]) -> dict[str, CelType]:
    self_type = declared({key: of for key, of in schema.items() if key != "x-kubernetes-validations"})
    return {"self": self_type, "oldSelf": OptionalType(self_type) if rule.get("optionalOldSelf") else self_type}


ACCEPTED = [
    pytest.param(schema, rule, id=f"{case['id']}{path[-40:]}:{rule['rule'][:30]}")
    for group in ("crd", "provisioningrequest")
    for case in definitions(group, {200, 201})
    for path, schema, rule in rules(case["body"])
]


def test_there_are_recorded_rules():
    assert len(ACCEPTED) >= 8


@pytest.mark.parametrize(("schema", "rule"), ACCEPTED)
def test_a_rule_kubernetes_accepted_compiles_within_its_budget(schema: dict[str, Any], rule: dict[str, Any]):
    compiled = compile_expression(rule["rule"], variables=variables(schema, rule), result=BOOL)
    assert compiled.estimate_cost() <= COST_LIMIT
    if "messageExpression" in rule:
        message = compile_expression(rule["messageExpression"], variables=variables(schema, rule), result=STRING)
        assert message.estimate_cost() <= COST_LIMIT


def test_rules_kubernetes_refused_are_refused_in_its_words():
    (case,) = [case for case in recorded("crd") if case["id"] == "crd-075"]
    causes = [cause["message"] for cause in case["response"]["details"]["causes"]]
    found = rules(case["body"])
    assert len(found) == len(causes) == 3
    for (_, schema, rule), cause in zip(found, causes, strict=True):
        with pytest.raises(CelCompileError) as caught:
            compile_expression(rule["rule"], variables=variables(schema, rule), result=BOOL)
        assert cause.endswith(f'"OptionalOldSelf":null}}: {caught.value.message}')


@pytest.mark.parametrize(("case_id", "expression"), [("crd-076", "rule"), ("crd-081", "messageExpression")])
def test_what_was_too_expensive_by_more_than_a_hundred_times_is(case_id: str, expression: str):
    (case,) = [case for case in recorded("crd") if case["id"] == case_id]
    ((schema, rule),) = [(schema, rule) for _, schema, rule in rules(case["body"]) if expression in rule]
    result = BOOL if expression == "rule" else STRING
    compiled = compile_expression(rule[expression], variables=variables(schema, rule), result=result)
    assert compiled.estimate_cost() > 100 * COST_LIMIT


def test_the_recorded_evaluation_error():
    (case,) = [case for case in recorded("crd") if case["id"] == "crd-089"]
    (cause,) = case["response"]["details"]["causes"]
    message = failure("self[1] > 0", {"self": ListType(INT, 3)}, self=case["body"]["spec"]["err"])
    assert cause["message"].endswith(f"{message} evaluating rule: self[1] > 0")


def test_the_recorded_message_expression():
    (case,) = [case for case in recorded("crd") if case["id"] == "crd-087"]
    (cause,) = case["response"]["details"]["causes"]
    message = compile_expression("'got ' + self + ', too long'", variables={"self": STRING}, result=STRING)
    assert cause["message"].endswith(str(message.evaluate({"self": case["body"]["spec"]["dyn"]}, budget=CostBudget())))


def test_the_recorded_optional_old_value():
    declared_variables = {"self": STRING, "oldSelf": OptionalType(STRING)}
    rule = compile_expression('oldSelf.hasValue() || self == "new"', variables=declared_variables, result=BOOL)
    assert rule.evaluate({"self": "old", "oldSelf": CelOptional.none()}, budget=CostBudget()) is False
    assert rule.evaluate({"self": "old", "oldSelf": CelOptional.of("x")}, budget=CostBudget()) is True
