"""Rules of ownership that no recording shows by itself."""

from __future__ import annotations

import json
from datetime import timedelta
from typing import Any

import pytest

from plimsoll.local.apiserver.apply.client_side import LAST_APPLIED
from plimsoll.local.apiserver.apply.conflicts import ApplyRefused
from plimsoll.local.apiserver.apply.field_manager import (
    Applied,
    FieldManager,
    choose_manager_name,
    restore_unchanged_times,
)
from plimsoll.local.apiserver.apply.typed.schemas import TypeSchema
from tests.local.apiserver.apply.recordings import NOW, endpoint, entries_of


def _config_map(data: dict[str, str] | None = None, **metadata: Any) -> dict[str, Any]:
    value: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a", **metadata}}
    return value if data is None else {**value, "data": data}


def _stored(value: dict[str, Any]) -> dict[str, Any]:
    return {**value, "metadata": {**value["metadata"], "uid": "u"}}


def _applied(live: dict[str, Any] | None, applied: dict[str, Any], manager: str = "one", *, force: bool = False) -> Any:
    outcome = endpoint("v1", "ConfigMap").apply(live, applied, manager=manager, force=force, now=NOW)
    assert isinstance(outcome, Applied)
    return outcome.value


def _owners(value: dict[str, Any]) -> dict[str, Any]:
    return {field["manager"]: field["fieldsV1"] for field in value["metadata"].get("managedFields", [])}


def _created(data: dict[str, str], manager: str = "golden", **metadata: Any) -> dict[str, Any]:
    return _stored(endpoint("v1", "ConfigMap").update(None, _config_map(data, **metadata), manager=manager, now=NOW))


def test_identity_and_book_keeping_have_no_owner() -> None:
    created = _created({"x": "1"}, uid="u", resourceVersion="5", generation=3, namespace="n", selfLink="s")
    assert _owners(created) == {"golden": {"f:data": {".": {}, "f:x": {}}}}


def test_a_write_to_an_object_without_owners_stays_untracked() -> None:
    live = _stored(_config_map({"x": "1"}))
    written = endpoint("v1", "ConfigMap").update(live, _stored(_config_map({"x": "2"})), manager="m", now=NOW)
    assert "managedFields" not in written["metadata"]


def test_the_first_apply_records_what_was_there_before() -> None:
    applied = _applied(_stored(_config_map({"x": "1"})), _config_map({"y": "1"}))
    assert _owners(applied) == {
        "before-first-apply": {"f:data": {".": {}, "f:x": {}}},
        "one": {"f:data": {"f:y": {}}},
    }


@pytest.mark.parametrize("given", [None, []])
def test_leaving_managed_fields_out_keeps_the_owners(given: Any) -> None:
    live = _created({"x": "1"})
    sent = _stored(_config_map({"x": "1"}))
    sent["metadata"]["managedFields"] = given
    written = endpoint("v1", "ConfigMap").update(live, sent, manager="m", now=NOW)
    assert written["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_a_subresource_cannot_change_the_owners_of_others() -> None:
    live = _created({"x": "1"})
    sent = {**live, "metadata": {**live["metadata"], "managedFields": [{}]}}
    written = endpoint("v1", "ConfigMap", "status").update(live, sent, manager="m", now=NOW)
    assert written["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_owners_that_cannot_be_read_are_taken_from_the_live_object() -> None:
    live = _created({"x": "1"})
    sent = {**live, "metadata": {**live["metadata"], "managedFields": [{"manager": "x", "operation": "Frob"}]}}
    written = endpoint("v1", "ConfigMap").update(live, sent, manager="m", now=NOW)
    assert written["metadata"]["managedFields"] == live["metadata"]["managedFields"]


def test_apply_over_unreadable_owners_is_an_error() -> None:
    live = _stored(_config_map({}, managedFields=[{"manager": "x", "operation": "Update", "apiVersion": "v1"}]))
    outcome = endpoint("v1", "ConfigMap").apply(live, _config_map({}), manager="m", force=False, now=NOW)
    assert isinstance(outcome, ApplyRefused)
    assert outcome.message == "failed to decode managed fields: missing fieldsType in managed fields entry 0"


def test_of_many_updaters_the_oldest_are_thrown_together() -> None:
    live = _created({"x0": "1"}, "m00")
    config_map = endpoint("v1", "ConfigMap")
    for turn in range(1, 13):
        sent = _stored(_config_map({**live["data"], f"x{turn}": "1"}))
        live = config_map.update(live, sent, manager=f"m{turn:02}", now=NOW + timedelta(seconds=turn))
    names = [field["manager"] for field in live["metadata"]["managedFields"]]
    assert names == ["ancient-changes", *(f"m{turn:02}" for turn in range(4, 13))]
    assert _owners(live)["ancient-changes"] == {"f:data": {".": {}, "f:x0": {}, "f:x1": {}, "f:x2": {}, "f:x3": {}}}


def test_appliers_are_never_thrown_together() -> None:
    live: dict[str, Any] | None = None
    for turn in range(15):
        live = _stored(_applied(live, _config_map({f"x{turn}": "1"}), f"m{turn:02}"))
    assert live is not None
    assert len(live["metadata"]["managedFields"]) == 15


def test_updaters_of_a_version_that_is_gone_lose_their_entry() -> None:
    live = _created({"x": "1"})
    live["metadata"]["managedFields"][0]["apiVersion"] = "v1beta1"
    applied = _applied(live, _config_map({"y": "1"}))
    assert set(_owners(applied)) == {"one"}


def test_an_updater_of_another_version_keeps_an_entry_of_its_own() -> None:
    schema = TypeSchema.from_definition({"type": "object", "properties": {"spec": {"type": "object"}}})
    schemas = {"ex.com/v1": schema, "ex.com/v2": schema}

    def at(version: str) -> FieldManager:
        return FieldManager(schemas, api_version=f"ex.com/{version}", kind="Widget")

    def widget(version: str, **spec: int) -> dict[str, Any]:
        return {
            "apiVersion": f"ex.com/{version}",
            "kind": "Widget",
            "metadata": {"name": "w", "uid": "u"},
            "spec": spec,
        }

    live = at("v1").update(None, widget("v1", a=1), manager="m", now=NOW)
    written = at("v2").update(live, widget("v2", a=1, b=1), manager="m", now=NOW)
    assert [(field["apiVersion"], field["fieldsV1"]) for field in written["metadata"]["managedFields"]] == [
        ("ex.com/v1", {"f:spec": {".": {}, "f:a": {}}}),
        ("ex.com/v2", {"f:spec": {"f:b": {}}}),
    ]
    applied = at("v2").apply(written, widget("v2", a=2), manager="n", force=True, now=NOW)
    assert isinstance(applied, Applied)
    assert {item["manager"]: item["fieldsV1"] for item in applied.value["metadata"]["managedFields"]}["n"] == {
        "f:spec": {"f:a": {}}
    }


def test_kubectl_takes_over_what_it_had_applied_on_the_clients_side() -> None:
    last = json.dumps(_config_map({"x": "1"}))
    live = _created({"x": "1"}, "kubectl-client-side-apply", annotations={LAST_APPLIED: last})
    applied = _applied(live, _config_map({"x": "2"}), "kubectl")
    assert applied["data"] == {"x": "2"}
    assert json.loads(applied["metadata"]["annotations"][LAST_APPLIED])["data"] == {"x": "2"}


def test_another_manager_than_kubectl_does_not() -> None:
    last = json.dumps(_config_map({"x": "1"}))
    live = _created({"x": "1"}, "kubectl-client-side-apply", annotations={LAST_APPLIED: last})
    outcome = endpoint("v1", "ConfigMap").apply(live, _config_map({"x": "2"}), manager="m", force=False, now=NOW)
    assert isinstance(outcome, ApplyRefused)
    assert outcome.code == 409


def test_what_changed_since_client_side_apply_is_still_a_conflict() -> None:
    last = json.dumps(_config_map({"x": "0"}))
    live = _created({"x": "1"}, "other", annotations={LAST_APPLIED: last})
    outcome = endpoint("v1", "ConfigMap").apply(live, _config_map({"x": "2"}), manager="kubectl", force=False, now=NOW)
    assert isinstance(outcome, ApplyRefused)


def test_conflicts_with_several_managers_are_listed_by_manager() -> None:
    live = _stored(_applied(_stored(_applied(None, _config_map({"x": "1"}), "b")), _config_map({"y": "1"}), "a"))
    outcome = endpoint("v1", "ConfigMap").apply(
        live, _config_map({"x": "2", "y": "2"}), manager="m", force=False, now=NOW
    )
    assert isinstance(outcome, ApplyRefused)
    assert outcome.message == (
        'Apply failed with 2 conflicts: conflicts with "a":\n- .data.y\nconflicts with "b":\n- .data.x'
    )


def test_problems_of_a_configuration_are_reported_together() -> None:
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "p"},
        "spec": {"hostNetwork": "x", "containers": [{"name": "c", "args": "x"}], "priority": []},
    }
    outcome = endpoint("v1", "Pod").apply(None, body, manager="m", force=False, now=NOW)
    assert isinstance(outcome, ApplyRefused)
    assert outcome.message == (
        "failed to create typed patch object (/p; /v1, Kind=Pod): errors:\n"
        "  .spec.hostNetwork: expected boolean, got &{x}\n"
        '  .spec.containers[name="c"].args: expected list, got &{x}\n'
        "  .spec.priority: expected numeric (int or float), got []interface {}"
    )


def test_a_write_that_changes_nothing_keeps_the_times() -> None:
    live = _stored(_applied(None, _config_map({"x": "1"})))
    again = _applied(live, _config_map({"x": "1"}))
    assert again == live
    later = {**live, "metadata": {**live["metadata"], "managedFields": [
        {**live["metadata"]["managedFields"][0], "time": "2030-01-01T00:00:00Z"}
    ]}}  # fmt: skip
    assert restore_unchanged_times(live, later) == live
    changed = {**later, "data": {"x": "2"}}
    assert restore_unchanged_times(live, changed) is changed


def test_a_new_manager_of_what_is_so_already_shares_it() -> None:
    live = _stored(_applied(None, _config_map({"x": "1"}), "one"))
    shared = _applied(live, _config_map({"x": "1"}), "two")
    assert _owners(shared) == {"one": {"f:data": {"f:x": {}}}, "two": {"f:data": {"f:x": {}}}}


@pytest.mark.parametrize(
    ("field_manager", "user_agent", "name"),
    [
        ("given", "kubectl/v1.34", "given"),
        (None, "kubectl/v1.34 (linux/amd64)", "kubectl"),
        ("", "curl", "curl"),
        (None, "a\x00b\x07c/1", "abc"),
        (None, "é" * 100, "é" * 64),
    ],
)
def test_the_user_agent_names_the_manager(field_manager: str | None, user_agent: str, name: str) -> None:
    assert choose_manager_name(field_manager, user_agent) == name


def test_a_list_without_keys_in_the_live_object_does_not_stop_a_write() -> None:
    live = {"apiVersion": "v1", "kind": "Pod", "metadata": {"uid": "u", "managedFields": _owners_of_pod()}, "spec": {}}
    new = {**live, "spec": {"containers": [None]}}
    written = endpoint("v1", "Pod").update(live, new, manager="m", now=NOW)
    assert "managedFields" not in written["metadata"]


def _owners_of_pod() -> list[dict[str, Any]]:
    entry = {"manager": "x", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1"}
    return [{**entry, "fieldsV1": {"f:spec": {"f:nodeName": {}}}}]


def test_schemaless_parts_are_owned_field_by_field_and_lists_as_a_whole() -> None:
    free = TypeSchema.from_definition(None)
    value = {"apiVersion": "ex.com/v1", "kind": "Free", "metadata": {"name": "f"}, "spec": {"a": {"b": [1, 2]}}}
    management = FieldManager({"ex.com/v1": free}, api_version="ex.com/v1", kind="Free")
    tracked = management.update(None, value, manager="m", now=NOW)
    assert entries_of(tracked)[0]["fieldsV1"] == {"f:spec": {".": {}, "f:a": {".": {}, "f:b": {}}}}
