from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

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


def stored_in(folder: Path, *documents: Any) -> str:
    file = folder / "old.yaml"
    file.write_text("---\n".join(yaml.safe_dump(document) for document in documents))
    return str(file)


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


def test_unknown_fields_are_errors():
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


def test_an_unknown_kind_asks_for_its_definition(reviewed: ReviewedSentences):
    ended = validate(gadget(low=1))
    assert ended.returncode == 1
    reviewed(ended.stdout)


@pytest.mark.parametrize(("missing", "path"), [("apiVersion", "apiVersion"), ("kind", "kind")])
def test_an_object_must_say_what_it_is(missing: str, path: str):
    ended = validate({key: value for key, value in POD.items() if key != missing})
    assert (ended.returncode, ended.stdout) == (1, f"{path}: Required value\n")


def test_json_has_everything():
    reported = validate({**POD, "metadata": {"name": "Q"}}, arguments=("-o", "json"))
    assert reported.returncode == 1
    data = json.loads(reported.stdout)
    assert data["valid"] is False
    assert data["objects"][0]["errors"][0]["field"] == "metadata.name"
    assert data["objects"][0]["errors"][0]["reason"] == "FieldValueInvalid"
    assert yaml.safe_load(validate(POD, arguments=("-o", "yaml")).stdout)["valid"] is True


def test_an_object_without_a_name_is_called_so():
    ended = validate(POD, {**POD, "metadata": {"namespace": "team"}})
    (reported,) = [line for line in ended.stdout.splitlines() if "(no name)" in line]
    assert reported.startswith("Pod/team/(no name): metadata.name: Required value")


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


def test_an_update_of_an_object_that_is_not_in_the_old_file_is_reported(tmp_path: Path):
    other = {**POD, "metadata": {"name": "other"}}
    ended = validate(POD, other, arguments=("--old", stored_in(tmp_path, other)))
    assert ended.returncode == 0
    assert ended.stderr == "warning: Pod/team/p is not in the --old file; validated as a creation\n"


def test_an_old_file_that_has_nothing_to_do_with_it_is_a_mistake(tmp_path: Path, reviewed: ReviewedSentences):
    ended = validate(POD, arguments=("--old", stored_in(tmp_path, {**POD, "metadata": {"name": "other"}})))
    assert ended.returncode == 2
    reviewed(ended.stderr)


def service(**spec: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web"},
        "spec": {"ports": [{"port": 80}], **spec},
    }


def test_an_update_is_found_when_only_one_side_names_the_namespace(tmp_path: Path):
    """`kubectl get -o yaml` writes the namespace, files often do not."""
    before = service(clusterIP="10.0.0.9")
    before["metadata"]["namespace"] = "default"
    ended = validate(service(clusterIP="10.0.0.1"), arguments=("--old", stored_in(tmp_path, before)))
    assert ended.returncode == 1
    assert "may not change once set" in ended.stdout


def test_an_update_is_not_mixed_up_with_the_same_kind_of_another_group(tmp_path: Path):
    foreign = {**service(), "apiVersion": "serving.knative.dev/v1"}
    old = stored_in(tmp_path, service(clusterIP="10.0.0.9"), foreign)
    assert validate(service(clusterIP="10.0.0.1"), arguments=("--old", old)).returncode == 1


def test_an_old_version_that_cannot_be_read_is_an_error(tmp_path: Path):
    old = stored_in(tmp_path, {**POD, "spec": {"containers": [{"name": "c", "image": 5}]}})
    ended = validate(POD, arguments=("--old", old))
    assert ended.returncode == 2
    assert "the stored version cannot be read: spec.containers[0].image" in ended.stderr


def test_a_lease_is_judged_as_an_update_without_a_resource_version(tmp_path: Path):
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"}, "spec": {}}
    assert validate(lease, arguments=("--old", stored_in(tmp_path, lease))).returncode == 0


def test_a_bound_claim_may_grow_without_saying_that_it_is_bound(tmp_path: Path):
    def claim(storage: str, **more: Any) -> dict[str, Any]:
        resources = {"requests": {"storage": storage}}
        spec = {"accessModes": ["ReadWriteOnce"], "resources": resources, "volumeName": "v"}
        return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "c"}, "spec": spec, **more}

    bound = stored_in(tmp_path, claim("1Gi", status={"phase": "Bound"}))
    assert validate(claim("2Gi"), arguments=("--old", bound)).returncode == 0
    pending = stored_in(tmp_path, claim("1Gi", status={"phase": "Pending"}))
    assert validate(claim("2Gi", status={"phase": "Bound"}), arguments=("--old", pending)).returncode == 1


def test_rules_that_were_broken_before_are_tolerated_with_a_warning(tmp_path: Path):
    old = stored_in(tmp_path, gadget(low=3, high=2))
    ended = validate(GADGETS, gadget(low=3, high=2), arguments=("--old", old))
    assert ended.returncode == 0
    assert "low is above high" in ended.stderr


def test_the_object_of_a_definition_that_is_not_valid_says_so():
    bad = json.loads(json.dumps(GADGETS))
    del bad["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["type"]
    ended = validate(bad, gadget(low=1, high=2))
    assert "Gadget/g: kind: the CustomResourceDefinition of Gadget is not valid itself" in ended.stdout


@pytest.mark.slow
def test_an_object_larger_than_a_server_takes_is_refused_in_one_line():
    labels = {f"key-{i}": "v" * 60 for i in range(100_000)}
    ended = validate({**POD, "metadata": {"name": "p", "labels": labels}})
    assert (ended.returncode, ended.stdout) == (1, "Request entity too large: limit is 3145728\n")


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "contains no object"),
        ("a: [", "line 2"),
        ("- 1", "an object was expected"),
        ("a: 1\na: 2", "occurs twice"),
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


def test_a_selector_of_ten_thousand_terms_is_judged_without_a_hang():
    selector = {"matchExpressions": [{"key": f"k{i}", "operator": "Nope"} for i in range(10_000)]}
    budget = {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": {"name": "b"}}
    ended = validate({**budget, "spec": {"selector": selector}})
    assert ended.returncode == 1
    assert "spec.selector.matchExpressions[9999].operator" in ended.stdout
