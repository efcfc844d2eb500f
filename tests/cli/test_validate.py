from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.commands import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p", "namespace": "team"},
    "spec": {"containers": [{"name": "c", "image": "x"}]},
}
GADGETS = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {"name": "gadgets.ex.com"},
    "spec": {
        "group": "ex.com",
        "scope": "Namespaced",
        "names": {"plural": "gadgets", "kind": "Gadget"},
        "versions": [
            {
                "name": "v1",
                "served": True,
                "storage": True,
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "spec": {
                                "type": "object",
                                "properties": {"low": {"type": "integer"}, "high": {"type": "integer"}},
                                "x-kubernetes-validations": [
                                    {"rule": "self.low <= self.high", "message": "low is above high"}
                                ],
                            }
                        },
                    }
                },
            }
        ],
    },
}


def gadget(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "ex.com/v1", "kind": "Gadget", "metadata": {"name": "g"}, "spec": spec}


def validate(*documents: Any, arguments: tuple[str, ...] = ()) -> Any:
    text = "---\n".join(yaml.safe_dump(document) for document in documents)
    return plimsoll("validate", "-f", "-", *arguments, stdin=text)


def test_a_valid_object_says_so():
    ended = validate(POD)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "Pod/team/p valid\n", "")


def test_errors_of_a_single_object_start_with_the_path():
    bad = {**POD, "spec": {"containers": [{"name": "C_", "image": "x", "resources": {"requests": {"cpu": "-1"}}}]}}
    ended = validate(bad)
    assert ended.returncode == 1
    assert [line.split(": ")[0] for line in ended.stdout.splitlines()] == [
        "spec.containers[0].name",
        "spec.containers[0].resources.requests[cpu]",
    ]


@pytest.mark.parametrize(
    ("quantity", "complaint"),
    [("1.5Mi5", "unable to parse quantity's suffix"), ("1x", "quantities must match the regular expression")],
)
def test_what_is_no_quantity_is_named_with_its_path(quantity: str, complaint: str):
    bad = {
        **POD,
        "spec": {"containers": [{"name": "c", "image": "x", "resources": {"requests": {"memory": quantity}}}]},
    }
    ended = validate(bad)
    assert ended.returncode == 1
    assert ended.stdout.startswith("spec.containers[0].resources.requests")
    assert complaint in ended.stdout


def test_fields_that_nobody_knows_are_errors():
    ended = validate({**POD, "spec": {**POD["spec"], "replicas": 3}})  # type: ignore[dict-item]  # a plain dict
    assert ended.returncode == 1
    assert ended.stdout == "spec.replicas: unknown field\n"


def test_several_objects_are_named_each():
    ended = validate(POD, {**POD, "metadata": {"name": "Q"}})
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[0] == "Pod/team/p valid"
    assert ended.stdout.splitlines()[1].startswith("Pod/Q: metadata.name: Invalid value")


def test_a_definition_given_along_judges_its_objects():
    assert validate(gadget(low=1, high=2), GADGETS).returncode == 0
    ended = validate(GADGETS, gadget(low=3, high=2))
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[1] == 'Gadget/g: spec: Invalid value: "object": low is above high'


def test_a_definition_that_is_not_valid_is_refused_as_such():
    bad = json.loads(json.dumps(GADGETS))
    bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"][0][
        "rule"
    ] = "self.x"
    ended = validate(bad)
    assert ended.returncode == 1
    assert "undefined field 'x'" in ended.stdout
    assert len(ended.stdout.splitlines()) == 1


def test_a_kind_that_nobody_knows_asks_for_its_definition():
    ended = validate(gadget(low=1))
    assert ended.returncode == 1
    assert "give its CustomResourceDefinition with -f" in ended.stdout


@pytest.mark.parametrize(("missing", "path"), [("apiVersion", "apiVersion"), ("kind", "kind")])
def test_an_object_must_say_what_it_is(missing: str, path: str):
    ended = validate({key: value for key, value in POD.items() if key != missing})
    assert (ended.returncode, ended.stdout) == (1, f"{path}: Required value\n")


def test_json_tells_everything():
    told = validate({**POD, "metadata": {"name": "Q"}}, arguments=("-o", "json"))
    assert told.returncode == 1
    data = json.loads(told.stdout)
    assert data["valid"] is False
    assert data["objects"][0]["errors"][0]["field"] == "metadata.name"
    assert data["objects"][0]["errors"][0]["reason"] == "FieldValueInvalid"
    assert yaml.safe_load(validate(POD, arguments=("-o", "yaml")).stdout)["valid"] is True


def test_names_of_the_invalid_ones_for_scripts():
    assert validate(POD, {**POD, "metadata": {"name": "Q"}}, arguments=("-o", "name")).stdout == "Pod/Q\n"


def test_deprecated_versions_are_a_warning_not_an_error():
    request = {
        "apiVersion": "autoscaling.x-k8s.io/v1beta1",
        "kind": "ProvisioningRequest",
        "metadata": {"name": "r"},
        "spec": {"provisioningClassName": "c", "podSets": [{"count": 1, "podTemplateRef": {"name": "t"}}]},
    }
    ended = validate(request)
    assert ended.returncode == 0
    assert "warning: ProvisioningRequest/r: autoscaling.x-k8s.io/v1beta1" in ended.stderr


def test_an_update_of_an_object_that_is_not_in_the_old_file_is_told(tmp_path: Path):
    old = tmp_path / "old.yaml"
    old.write_text(yaml.safe_dump({**POD, "metadata": {"name": "other"}}))
    ended = validate(POD, arguments=("--old", str(old)))
    assert ended.returncode == 0
    assert "judged as a creation" in ended.stderr


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "holds no object"),
        ("a: [", "line 2"),
        ("- 1", "an object was expected"),
        ("a: 1\na: 2", "stands twice"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 50_000, "nested deeper"),
    ],
)
def test_what_cannot_be_read_ends_with_2_and_says_where(text: str, complaint: str):
    ended = plimsoll("validate", "-f", "-", stdin=text)
    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: -: ")
    assert complaint in ended.stderr


def test_a_huge_label_map_and_a_selector_of_ten_thousand_terms_are_judged_without_a_hang():
    labels = {f"key-{i}": "v" * 60 for i in range(100_000)}
    selector = {"matchExpressions": [{"key": f"k{i}", "operator": "Nope"} for i in range(10_000)]}
    budget = {
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": {"name": "b"},
        "spec": {"selector": selector},
    }
    ended = plimsoll(
        "validate",
        "-f",
        "-",
        stdin=json.dumps({"kind": "List", "items": [{**POD, "metadata": {"name": "p", "labels": labels}}, budget]}),
    )
    assert ended.returncode == 1
    assert ended.stdout.splitlines()[0] == "Pod/p valid"
    assert "spec.selector.matchExpressions[9999].operator" in ended.stdout
