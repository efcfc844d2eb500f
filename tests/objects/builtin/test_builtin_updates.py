"""What may change, and the recorded sentence where it may not."""

from __future__ import annotations

from copy import deepcopy
from typing import Any

import pytest

from plimsoll.objects.builtin import check_update
from tests.objects.builtin.recordings import a_container, a_job, a_pod, a_workload, an_object, causes, recorded

Json = dict[str, Any]

UPDATES = recorded("update")


def merged(old: Any, patch: Any) -> Any:
    """A merge patch."""
    if not isinstance(patch, dict) or not isinstance(old, dict):
        return patch
    return {**old, **{key: merged(old.get(key), value) for key, value in patch.items()}}


CONFIG = an_object("v1", "ConfigMap", data={"x": "1"})
BUDGET = an_object(
    "policy/v1", "PodDisruptionBudget", spec={"minAvailable": 2, "selector": {"matchLabels": {"a": "b"}}}
)
BINDING = an_object(
    "rbac.authorization.k8s.io/v1",
    "RoleBinding",
    roleRef={"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
)
CLAIM = an_object(
    "v1",
    "PersistentVolumeClaim",
    spec={"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
)
SERVICE = an_object(
    "v1",
    "Service",
    spec={
        "ports": [{"port": 80}],
        "clusterIP": "10.96.0.9",
        "clusterIPs": ["10.96.0.9"],
        "ipFamilies": ["IPv4"],
        "ipFamilyPolicy": "SingleStack",
    },
)
STORED: dict[str, Json] = {
    "update-021": a_workload("Deployment"),
    "update-029": a_pod(activeDeadlineSeconds=100),
    "update-030": a_workload("StatefulSet", serviceName="s"),
    "update-031": a_job(completions=1, parallelism=1),
    "update-033": SERVICE,
    "update-034": an_object("v1", "Secret", type="Opaque"),
    "update-035": {**CONFIG, "data": {"a": "b"}, "immutable": True},
    "update-037": an_object("storage.k8s.io/v1", "StorageClass", provisioner="a/b"),
    "update-038": an_object("scheduling.k8s.io/v1", "PriorityClass", value=5),
    "update-039": BINDING,
    "update-041": BUDGET,
    "update-044": {**CONFIG, "metadata": {"name": "a", "uid": "11111111-1111-1111-1111-111111111111"}},
}


@pytest.mark.parametrize("id_", STORED)
def test_a_refused_update_gives_the_recorded_causes(id_: str):
    old = STORED[id_]
    verdict = check_update(merged(old, UPDATES[id_]["body"]), old)
    assert [error.cause for error in verdict.errors] == causes(UPDATES[id_])


@pytest.mark.parametrize(
    ("id_", "old", "patch"),
    [
        ("update-023", a_pod(), {"spec": {"nodeName": "x"}}),
        ("update-024", a_pod(), {"spec": {"containers": [a_container(name="d")]}}),
        ("update-025", a_pod(), {"spec": {"containers": [a_container(resources={"requests": {"cpu": "1"}})]}}),
        ("update-036", CLAIM, {"spec": {"accessModes": ["ReadOnlyMany"]}}),
    ],
)
def test_a_frozen_spec_gives_the_recorded_sentence_without_the_difference(id_: str, old: Json, patch: Json):
    [error] = check_update(merged(old, patch), old).errors
    [cause] = causes(UPDATES[id_])
    assert (error.cause["reason"], error.field) == (cause["reason"], cause["field"])
    assert error.message == cause["message"].partition("\n")[0]


def test_a_job_template_is_immutable():
    old = a_job()
    new = deepcopy(old)
    new["spec"]["template"]["spec"]["containers"][0]["image"] = "y"
    [error] = check_update(new, old).errors
    [cause] = causes(UPDATES["update-032"])
    assert error.field == cause["field"]
    assert error.detail == "field is immutable"


def test_a_suspended_job_may_still_say_where_its_pods_go():
    old = a_job(suspend=True)
    new = deepcopy(old)
    new["spec"]["template"]["spec"]["nodeSelector"] = {"zone": "a"}
    assert check_update(new, old).is_good


@pytest.mark.parametrize(
    "patch",
    [
        {"spec": {"containers": [a_container(image="nginx:1.28")]}},
        {"spec": {"tolerations": [{"key": "x", "operator": "Exists"}]}},
        {"spec": {"activeDeadlineSeconds": 100}},
        {"metadata": {"labels": {"a": "b"}}},
    ],
)
def test_little_of_a_pod_may_change(patch: Json):
    assert check_update(merged(a_pod(), patch), a_pod()).is_good


def test_a_toleration_may_not_be_taken_away():
    old = a_pod(tolerations=[{"key": "x", "operator": "Exists"}])
    [error, *_] = check_update(a_pod(), old).errors
    assert (
        error.text
        == "spec.tolerations: Forbidden: existing toleration can not be modified except its tolerationSeconds"
    )


def test_gates_may_only_go():
    old = a_pod(schedulingGates=[{"name": "example.com/a"}])
    assert check_update(a_pod(schedulingGates=[]), old).is_good
    [error] = check_update(a_pod(schedulingGates=[{"name": "example.com/b"}]), old).errors
    assert error.text == (
        "spec.schedulingGates[0].name: Forbidden: only deletion is allowed, "
        "but found new scheduling gate 'example.com/b'"
    )


@pytest.mark.parametrize(
    ("old", "patch"),
    [
        (CONFIG, {"data": {"x": "2"}}),
        (BUDGET, {"spec": {"minAvailable": 3}}),
        (a_workload("StatefulSet"), {"spec": {"replicas": 3}}),
        (a_workload("Deployment"), {"spec": {"template": {"spec": {"nodeSelector": {"a": "b"}}}}}),
        (CLAIM, {"spec": {"volumeName": "pv-1"}}),
        (SERVICE, {"spec": {"clusterIP": None, "clusterIPs": None}}),
    ],
)
def test_what_may_change_may_change(old: Json, patch: Json):
    assert check_update(merged(old, patch), old).is_good


def test_no_finalizer_is_added_to_what_is_being_deleted():
    old = {**CONFIG, "metadata": {"name": "a", "deletionTimestamp": "2026-01-01T00:00:00Z", "finalizers": ["a/b"]}}
    new = {**CONFIG, "metadata": {"name": "a", "finalizers": ["a/b", "c/d"]}}
    assert check_update(new, old).errors[0].text == (
        "metadata.finalizers: Forbidden: no new finalizers can be added if the object is being deleted, "
        'found new finalizers []string{"c/d"}'
    )


def test_an_old_object_of_another_kind_is_no_old_object():
    assert check_update(CONFIG, a_pod()).is_good
