"""Server-side apply as a real API server did it: the object, who owns what, and the refusals."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.local.apiserver.apply.conflicts import ApplyRefused
from plimsoll.local.apiserver.apply.field_manager import Applied
from plimsoll.local.apiserver.apply.scale import ScaleOwnership
from plimsoll.objects.builtin import default
from plimsoll.objects.codec.yaml import load_all
from tests.local.apiserver.apply.recordings import (
    NOW,
    as_controllers_left_it,
    definitions,
    endpoint,
    entries_of,
    object_path,
    objects_before,
    recordings,
    untracked,
)

# These need what lies around the apply itself.
_HANDLERS = {
    "apply-010": "a merge patch: see below",
    "apply-012": "the request has no fieldManager",
    "apply-016": "the name in the URL",
    "apply-019": "optimistic locking",
    "apply-020": "a uid with no object",
    "apply-021": "YAML 1.1 makes the name a boolean: see below",
    "apply-022": "a body in YAML: see below",
    "apply-023": "text that is not YAML",
    "apply-025": "the options of a merge patch",
    "apply-030": "validation of the applied object",
    "apply-033": "scale: see below",
    "apply-034": "a read",
    "apply-036": "a controller wrote the status in between: see below",
    "apply-037": "a merge patch: see below",
    "apply-038": "the object before it was not recorded: see below",
}
_CUSTOM = [
    ("crd", "crd-057"),
    ("crd", "crd-058"),
    ("crd", "crd-059"),
    ("provisioningrequest", "provisioningrequest-029"),
]
_APPLIES = [("apply", name) for name in recordings("apply") if name not in _HANDLERS]


def _outcome(group: str, name: str, live: Any) -> Applied | ApplyRefused:
    entry = recordings(group)[name]
    body, query = entry["body"], entry["query"]
    plural = {"configmaps": ("v1", "ConfigMap"), "deployments": ("apps/v1", "Deployment")}
    path, subresource = object_path(entry)
    api_version, kind = plural.get(path.split("/")[-2], (body.get("apiVersion"), body.get("kind")))
    defined = definitions(group).get((api_version, kind))
    return endpoint(api_version, kind, subresource, defined=defined).apply(
        live, body, manager=query["fieldManager"], force=query.get("force") == "true", now=NOW
    )


def _refused(outcome: Applied | ApplyRefused, entry: dict[str, Any]) -> None:
    answer = entry["response"]
    assert isinstance(outcome, ApplyRefused)
    assert (outcome.code, outcome.reason) == (entry["status"], answer.get("reason", ""))
    assert outcome.message == answer["message"]
    assert list(outcome.causes) == answer.get("details", {}).get("causes", [])


def _written_by_others(value: dict[str, Any]) -> dict[str, Any]:
    """The object without what the server writes around an apply."""
    server = ("uid", "resourceVersion", "generation", "creationTimestamp", "namespace", "name", "managedFields")
    metadata = {name: item for name, item in value["metadata"].items() if name not in server}
    return {**value, "metadata": metadata, "status": None}


@pytest.mark.parametrize(("group", "name"), [*_APPLIES, *_CUSTOM, ("fieldvalidation", "fieldvalidation-019")])
def test_apply_does_what_the_real_server_did(group: str, name: str) -> None:
    entry, live = recordings(group)[name], objects_before(group)[name]
    answer = entry["response"]
    if entry["status"] < 300 and live is not None and "/status" not in entry["path"] and "status" in answer:
        live = as_controllers_left_it(live, answer)
    outcome = _outcome(group, name, live)
    if entry["status"] >= 300:
        _refused(outcome, entry)
        return
    assert isinstance(outcome, Applied)
    assert entries_of(outcome.value) == entries_of(answer)
    value = default(outcome.value) if group == "apply" else outcome.value
    assert _written_by_others(value) == _written_by_others(answer)


def test_times_and_order_of_entries() -> None:
    """The applier's own entry is as young as its change; appliers come before updaters, older before younger."""
    live = objects_before("apply")["apply-029"]
    answer = recordings("apply")["apply-029"]["response"]
    outcome = _outcome("apply", "apply-029", as_controllers_left_it(live, answer))
    assert isinstance(outcome, Applied)
    entries = outcome.value["metadata"]["managedFields"]
    assert [(entry["manager"], entry["time"]) for entry in entries] == [
        ("one", "2026-11-15T04:02:31Z"),
        ("two", "2027-01-01T00:00:00Z"),
        ("kube-controller-manager", "2026-11-15T04:02:31Z"),
    ]


def test_an_update_takes_fields_from_an_applier() -> None:
    answer = recordings("apply")["apply-010"]["response"]
    tracked = endpoint("v1", "ConfigMap").update(
        objects_before("apply")["apply-010"], untracked(answer), manager="updater", now=NOW
    )
    assert entries_of(tracked) == entries_of(answer)


@pytest.mark.parametrize("name", ["apply-021", "apply-022"])
def test_bodies_in_yaml(name: str) -> None:
    entry = recordings("apply")[name]
    ((_, body),) = load_all(entry["body"])
    outcome = endpoint("v1", "ConfigMap").apply(None, body, manager="one", force=False, now=NOW)
    if entry["status"] >= 300:
        _refused(outcome, entry)
    else:
        assert isinstance(outcome, Applied)
        assert entries_of(outcome.value) == entries_of(entry["response"])


def test_scale_takes_the_replicas_and_the_entry_has_no_time() -> None:
    body = recordings("apply")["apply-033"]["body"]
    after = recordings("apply")["apply-034"]["response"]
    before = as_controllers_left_it(objects_before("apply")["apply-033"], after)
    ownership = ScaleOwnership(
        before["metadata"]["managedFields"], api_version="apps/v1", paths={"apps/v1": ("spec", "replicas")}
    )
    scale = {
        "apiVersion": "autoscaling/v1",
        "kind": "Scale",
        "metadata": {"name": "d", "uid": "u", "managedFields": ownership.build_scale_entries()},
        "spec": {},
        "status": {"replicas": 0},
    }
    written = endpoint("autoscaling/v1", "Scale", "scale").update(scale, scale | body, manager="scaler", now=NOW)
    entries = ownership.build_parent_entries(written["metadata"]["managedFields"])
    assert [entry for entry in entries if entry["manager"] == "scaler"] == [
        field for field in after["metadata"]["managedFields"] if field["manager"] == "scaler"
    ]
    assert entries_of({"metadata": {"managedFields": entries}}) == entries_of(after)


def test_apply_to_status_owns_the_condition_alone() -> None:
    answer = recordings("apply")["apply-036"]["response"]
    live = as_controllers_left_it(objects_before("apply")["apply-036"], answer)
    others = [condition for condition in answer["status"]["conditions"] if condition["type"] != "Mine"]
    live = {**live, "status": {**live["status"], "conditions": others}}
    outcome = _outcome("apply", "apply-036", live)
    assert isinstance(outcome, Applied)
    assert entries_of(outcome.value) == entries_of(answer)
    assert outcome.value["status"]["conditions"] == [*others, {"type": "Mine", "status": "True"}]


def test_a_list_with_one_empty_entry_clears_the_owners() -> None:
    answer = recordings("apply")["apply-037"]["response"]
    sent = {**answer, "metadata": {**answer["metadata"], "managedFields": [{}]}}
    live = objects_before("apply")["apply-037"]
    tracked = endpoint("v1", "ConfigMap").update(live, sent, manager="golden", now=NOW)
    assert tracked == answer


def test_kubectl_meets_a_conflict_where_another_client_applied() -> None:
    config_map = endpoint("v1", "ConfigMap")
    created = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "csa"}, "data": {"a": "1"}}
    live = config_map.update(None, created, manager="kubectl-client-side-apply", now=NOW)
    entry = recordings("apply")["apply-038"]
    _refused(config_map.apply(live, entry["body"], manager="kubectl", force=False, now=NOW), entry)
