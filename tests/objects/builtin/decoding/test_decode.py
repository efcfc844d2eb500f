"""Go's decoder, sentence by sentence."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.builtin import check_create, default
from plimsoll.objects.builtin.decoding.go_scalars import find_base64_problem
from plimsoll.objects.builtin.decoding.go_times import RFC3339_MICRO, find_time_problem
from tests.objects.builtin.recordings import a_container, a_pod, a_workload, an_object

Json = dict[str, Any]


def problems(obj: Json) -> list[tuple[str, str]]:
    return [(problem.path, problem.text) for problem in check_create(obj).decode_problems]


@pytest.mark.parametrize(
    ("obj", "path", "text"),
    [
        (
            a_pod(containers=[a_container(env=[{"name": "A", "value": 5}])]),
            "spec.containers[0].env[0].value",
            "json: cannot unmarshal number into Go struct field EnvVar.spec.containers.env.value of type string",
        ),
        (
            a_pod(restartPolicy=True),
            "spec.restartPolicy",
            "json: cannot unmarshal bool into Go struct field PodSpec.spec.restartPolicy of type v1.RestartPolicy",
        ),
        (
            a_pod(containers={}),
            "spec.containers",
            "json: cannot unmarshal object into Go struct field PodSpec.spec.containers of type []v1.Container",
        ),
        (
            a_pod(containers=["x"]),
            "spec.containers[0]",
            "json: cannot unmarshal string into Go struct field PodSpec.spec.containers of type v1.Container",
        ),
        (
            a_pod(metadata={"labels": ["a"]}),
            "metadata.labels",
            "json: cannot unmarshal array into Go struct field ObjectMeta.metadata.labels of type map[string]string",
        ),
        (
            a_pod(containers=[a_container(resources={"limits": "1"})]),
            "spec.containers[0].resources.limits",
            (
                "json: cannot unmarshal string into Go struct field "
                "ResourceRequirements.spec.containers.resources.limits "
                "of type v1.ResourceList"
            ),
        ),
        (
            a_workload("Deployment", replicas=3_000_000_000),
            "spec.replicas",
            "json: cannot unmarshal number 3000000000 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            a_workload("Deployment", replicas=1.5),
            "spec.replicas",
            "json: cannot unmarshal number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
        ),
        (
            {**a_pod(), "spec": []},
            "spec",
            "json: cannot unmarshal array into Go struct field Pod.spec of type v1.PodSpec",
        ),
        (
            an_object("v1", "Secret", data=5),
            "data",
            "json: cannot unmarshal number into Go struct field Secret.data of type map[string][]uint8",
        ),
    ],
)
def test_a_wrong_type(obj: Json, path: str, text: str):
    assert problems(obj) == [(path, text)]


@pytest.mark.parametrize(
    ("quantity", "text"),
    [
        ("", "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        (True, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ({}, "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"),
        ("1KM", "unable to parse quantity's suffix"),
        (".", "unable to parse numeric part of quantity"),
    ],
)
def test_a_bad_quantity(quantity: Any, text: str):
    pod = a_pod(containers=[a_container(resources={"requests": {"cpu": quantity}})])
    assert problems(pod) == [("spec.containers[0].resources.requests[cpu]", text)]


@pytest.mark.parametrize(
    ("port", "text"),
    [
        (False, "json: cannot unmarshal bool into Go value of type int32"),
        (2**40, "json: cannot unmarshal number 1099511627776 into Go value of type int32"),
        ([], "json: cannot unmarshal array into Go value of type int32"),
    ],
)
def test_a_port_that_is_neither_number_nor_name(port: Any, text: str):
    service = an_object("v1", "Service", spec={"ports": [{"port": 80, "targetPort": port}]})
    assert problems(service) == [("spec.ports[0].targetPort", text)]


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("2026-01-01T00:00:00Z", None),
        ("2026-01-01T00:00:00.5+01:00", None),
        ("2024-02-29T23:59:59Z", None),
        ("2026-02-29T00:00:00Z", 'parsing time "2026-02-29T00:00:00Z": day out of range'),
        ("2026-13-01T00:00:00Z", 'parsing time "2026-13-01T00:00:00Z": month out of range'),
        ("2026-01-01T25:00:00Z", 'parsing time "2026-01-01T25:00:00Z": hour out of range'),
        ("2026-01-01T00:00:00Zx", 'parsing time "2026-01-01T00:00:00Zx": extra text: "x"'),
        (
            "2026-01-01",
            'parsing time "2026-01-01" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "T"',
        ),
        (
            "2026-01-01T00:00:00",
            'parsing time "2026-01-01T00:00:00" as "2006-01-02T15:04:05Z07:00": cannot parse "" as "Z07:00"',
        ),
    ],
)
def test_times(text: str, problem: str | None):
    assert find_time_problem(text) == problem


def test_a_micro_time_has_six_digits():
    assert find_time_problem("2026-01-01T00:00:00.123456Z", RFC3339_MICRO) is None
    assert find_time_problem("2026-01-01T00:00:00Z", RFC3339_MICRO) == (
        'parsing time "2026-01-01T00:00:00Z" as "2006-01-02T15:04:05.000000Z07:00": cannot parse "Z" as ".000000"'
    )


@pytest.mark.parametrize(
    ("text", "byte"),
    [
        ("", None),
        ("aGVsbG8=", None),
        ("aGVs\nbG8=\n", None),
        ("aGV", 0),
        ("aGVsbG8", 4),
        ("a=bc", 1),
        ("aGV%", 3),
        ("aG=x", 2),
    ],
)
def test_base64(text: str, byte: int | None):
    expected = None if byte is None else f"illegal base64 data at input byte {byte}"
    assert find_base64_problem(text) == expected


def test_all_problems_are_listed_and_go_says_only_the_one_that_stopped_it():
    pod = a_pod(
        restartPolicy=1,
        containers=[a_container(resources={"requests": {"cpu": "1x"}}), a_container(image=2)],
    )
    verdict = check_create(pod)
    assert [problem.path for problem in verdict.decode_problems] == [
        "spec.containers[0].resources.requests[cpu]",
        "spec.containers[1].image",
        "spec.restartPolicy",
    ]
    assert verdict.decode_error is not None
    assert verdict.decode_error.startswith("quantities must match")


def test_null_equals_absent():
    pod = a_pod(nodeSelector=None, affinity={"nodeAffinity": None}, containers=[a_container(ports=None)])
    assert check_create(pod).is_good
    assert "nodeSelector" not in default(pod)["spec"]


def test_a_null_element_is_a_zero_value():
    verdict = check_create(a_pod(containers=[None], metadata={"labels": {"a": None}}))
    assert [error.text for error in verdict.errors] == [
        "spec.containers[0].name: Required value",
        "spec.containers[0].image: Required value",
    ]


def test_case_matters():
    assert check_create({**an_object("v1", "ConfigMap"), "Data": {}}).unknown_fields == ["Data"]


def test_a_kind_that_is_not_built_in_is_not_ours():
    assert not check_create({"apiVersion": "example.com/v1", "kind": "Foo"}).is_ours
    assert not check_create({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}).is_ours
    assert not check_create({"apiVersion": 5, "kind": []}).is_ours
    assert not check_create({"apiVersion": "../v1", "kind": "Pod"}).is_ours


def test_raw_values_are_kept_as_they_are():
    revision = an_object("apps/v1", "ControllerRevision", revision=1, data={"a": None, "b": [{"c": 1}]})
    assert default(revision)["data"] == {"a": None, "b": [{"c": 1}]}
