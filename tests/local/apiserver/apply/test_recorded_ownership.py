"""Who owns what after recorded creates, updates and patches."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.objects.builtin import default
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

# The object as it is when it is tracked differs from what we can make of the request: the handlers know more.
_CREATED_OTHERWISE: dict[str, str] = {
    "create-001": "finalizers of a namespace are set after tracking",
    "create-012": "an annotation comes from a conversion between versions inside the real server",
    "create-019": "clusterIPs of a service are set after tracking",
}
_WRITES = ("update", "patch", "subresources", "crd", "provisioningrequest", "lease", "events")


def _creates() -> list[str]:
    return [
        name
        for name, entry in recordings("create").items()
        if entry["status"] == 201 and "managedFields" in entry["response"].get("metadata", {})
    ]


@pytest.mark.parametrize("name", sorted(set(_creates()) - set(_CREATED_OTHERWISE)))
def test_a_create_owns_what_it_wrote(name: str) -> None:
    entry = recordings("create")[name]
    answer = entry["response"]
    api_version, kind = answer["apiVersion"], answer["kind"]
    new = default({"apiVersion": api_version, "kind": kind, **entry["body"]})
    _, subresource = object_path(entry)
    tracked = endpoint(api_version, kind, subresource).update(None, new, manager="golden", now=NOW)
    assert entries_of(tracked) == entries_of(answer)


def test_what_is_set_after_tracking_has_no_owner() -> None:
    answer = recordings("create")["create-001"]["response"]
    new = {**untracked(answer), "spec": {}}
    tracked = endpoint("v1", "Namespace").update(None, new, manager="golden", now=NOW)
    assert entries_of(tracked) == entries_of(answer)


_UPDATED_OTHERWISE: dict[str, str] = {
    "update-020": "a controller wrote the status in between",
    "patch-044": "a controller wrote an annotation in between",
    "crd-050": "a label was tracked and then dropped: see below",
}


def _updates() -> list[tuple[str, str]]:
    found = []
    for group in _WRITES:
        for name, entry in recordings(group).items():
            answer = entry["response"]
            is_write = entry["method"] in {"PUT", "PATCH"} and entry["status"] == 200
            if not is_write or not isinstance(answer, dict) or "apply" in entry["headers"]["Content-Type"]:
                continue
            if objects_before(group)[name] and answer.get("metadata", {}).get("managedFields"):
                found.append((group, name))
    return found


@pytest.mark.parametrize(("group", "name"), [update for update in _updates() if update[1] not in _UPDATED_OTHERWISE])
def test_a_write_takes_what_it_changed(group: str, name: str) -> None:
    entry = recordings(group)[name]
    answer: dict[str, Any] = entry["response"]
    _, subresource = object_path(entry)
    live = objects_before(group)[name]
    if subresource != "status" and "status" in live:
        live = as_controllers_left_it(live, answer)
    api_version, kind = answer["apiVersion"], answer["kind"]
    defined = definitions(group).get((api_version, kind))
    manager = entry["query"].get("fieldManager", "golden")
    tracked = endpoint(api_version, kind, subresource, defined=defined).update(
        live, untracked(answer), manager=manager, now=NOW
    )
    assert entries_of(tracked) == entries_of(answer)


def test_labels_sent_to_the_status_of_a_custom_resource_are_owned_although_they_are_dropped() -> None:
    entry = recordings("crd")["crd-050"]
    defined = definitions("crd")["ex.com/v1", "Widget"]
    sent = untracked(entry["response"])
    sent = {**sent, "metadata": {**sent["metadata"], "labels": entry["body"]["metadata"]["labels"]}}
    tracked = endpoint("ex.com/v1", "Widget", "status", defined=defined).update(
        objects_before("crd")["crd-050"], sent, manager="golden", now=NOW
    )
    assert entries_of(tracked) == entries_of(entry["response"])


def test_a_status_write_takes_conditions_and_leaves_the_controllers_their_empty_list() -> None:
    entry = recordings("update")["update-020"]
    live = objects_before("update")["update-020"]
    live = {**live, "status": {**live["status"], "observedGeneration": 3}}
    tracked = endpoint("apps/v1", "Deployment", "status").update(
        live, untracked(entry["response"]), manager="golden", now=NOW
    )
    assert entries_of(tracked) == entries_of(entry["response"])
