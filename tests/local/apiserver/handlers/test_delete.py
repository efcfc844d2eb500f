from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from plimsoll.local.apiserver.registry.deletion import plan_deletion
from plimsoll.local.apiserver.request.options import DeleteOptions
from tests.local.apiserver.builders import MERGE, ApiServerHarness, config_map, deployment, pod

NOW = datetime(2026, 1, 1, tzinfo=UTC)


@pytest.fixture
def world():
    with ApiServerHarness() as made:
        yield made


@pytest.fixture
def maps(world: ApiServerHarness) -> str:
    return f"{world.namespace()}/configmaps"


def test_an_object_that_is_gone_is_reported_by_a_status(world: ApiServerHarness, maps: str):
    uid = world.made(maps, config_map())["metadata"]["uid"]
    reply = world.ask("DELETE", f"{maps}/a")
    assert (reply.status, reply.body["status"]) == (200, "Success")
    assert reply.body["details"] == {"name": "a", "kind": "configmaps", "uid": uid}
    assert world.ask("DELETE", f"{maps}/a").status == 404


def test_a_finalizer_holds_the_object_and_its_removal_lets_it_go(world: ApiServerHarness, maps: str):
    world.made(maps, config_map(metadata={"finalizers": ["ex.com/hold"]}))
    held = world.ask("DELETE", f"{maps}/a").body["metadata"]
    assert (held["deletionTimestamp"], held["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:00Z", 0)
    world.run.advance_by(10)
    assert world.ask("DELETE", f"{maps}/a").body["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"
    freed = world.ask("PATCH", f"{maps}/a", {"metadata": {"finalizers": None}}, content=MERGE)
    assert freed.status == 200
    assert world.ask("GET", f"{maps}/a").status == 404


def test_a_deletion_cannot_be_taken_back(world: ApiServerHarness, maps: str):
    world.made(maps, config_map(metadata={"finalizers": ["ex.com/hold"]}))
    world.ask("DELETE", f"{maps}/a")
    reply = world.ask("PATCH", f"{maps}/a", {"metadata": {"deletionTimestamp": None}}, content=MERGE)
    assert reply.body["metadata"]["deletionTimestamp"] == "2026-01-01T00:00:00Z"


@pytest.mark.parametrize(
    ("conditions", "why"),
    [
        ({"uid": "1"}, "The object might have been deleted and then recreated"),
        ({"resourceVersion": "1"}, "The object might have been modified"),
    ],
)
def test_preconditions_are_held(world: ApiServerHarness, maps: str, conditions: dict[str, str], why: str):
    world.made(maps, config_map())
    reply = world.ask("DELETE", f"{maps}/a", {"preconditions": conditions})
    assert (reply.status, reply.body["details"]) == (409, {"name": "a", "kind": "ConfigMap"})
    assert reply.message.endswith(why)


def test_a_dry_run_deletes_nothing(world: ApiServerHarness, maps: str):
    world.made(maps, config_map())
    assert world.ask("DELETE", f"{maps}/a?dryRun=All").status == 200
    assert world.ask("GET", f"{maps}/a").status == 200


@pytest.mark.parametrize(
    ("policy", "finalizers"), [("Foreground", ["foregroundDeletion"]), ("Orphan", ["orphan"]), ("Background", None)]
)
def test_the_propagation_policy_leaves_its_finalizer(
    world: ApiServerHarness, policy: str, finalizers: list[str] | None
):
    world.namespace()
    url = "/apis/apps/v1/namespaces/here/deployments"
    world.made(url, deployment())
    reply = world.ask("DELETE", f"{url}/d", {"propagationPolicy": policy})
    if finalizers is None:
        assert reply.body["kind"] == "Status"
    else:
        assert reply.body["metadata"]["finalizers"] == finalizers
        assert reply.body["metadata"]["generation"] == 2


def test_policies_that_are_none_or_two_are_refused(world: ApiServerHarness, maps: str):
    world.made(maps, config_map())
    assert world.ask("DELETE", f"{maps}/a?propagationPolicy=Foo").status == 422
    both = {"propagationPolicy": "Background", "orphanDependents": True}
    assert world.ask("DELETE", f"{maps}/a", both).status == 422


# ---- pods


@pytest.fixture
def pods(world: ApiServerHarness) -> str:
    return f"{world.namespace()}/pods"


def test_a_bound_pod_is_given_its_grace(world: ApiServerHarness, pods: str):
    world.made(pods, pod(node="n", terminationGracePeriodSeconds=7))
    metadata = world.ask("DELETE", f"{pods}/p").body["metadata"]
    assert (metadata["deletionTimestamp"], metadata["deletionGracePeriodSeconds"]) == ("2026-01-01T00:00:07Z", 7)
    assert world.ask("GET", f"{pods}/p").status == 200


def test_grace_can_be_shortened_and_not_lengthened(world: ApiServerHarness, pods: str):
    world.made(pods, pod(node="n"))
    world.ask("DELETE", f"{pods}/p")
    shorter = world.ask("DELETE", f"{pods}/p?gracePeriodSeconds=5").body["metadata"]
    assert (shorter["deletionTimestamp"], shorter["generation"]) == ("2026-01-01T00:00:05Z", 2)
    longer = world.ask("DELETE", f"{pods}/p?gracePeriodSeconds=100").body["metadata"]
    assert longer["deletionGracePeriodSeconds"] == 5
    world.ask("DELETE", f"{pods}/p?gracePeriodSeconds=0")
    assert world.ask("GET", f"{pods}/p").status == 404


def test_a_pod_without_a_node_goes_at_once_and_is_shown(world: ApiServerHarness, pods: str):
    world.made(pods, pod())
    reply = world.ask("DELETE", f"{pods}/p")
    assert (reply.body["kind"], reply.body["metadata"]["deletionGracePeriodSeconds"]) == ("Pod", 0)
    assert world.ask("GET", f"{pods}/p").status == 404


@given(
    st.lists(st.integers(min_value=0, max_value=100), min_size=1, max_size=8),
    st.integers(min_value=0, max_value=60),
)
def test_a_pods_end_never_moves_away(graces: list[int], of_spec: int):
    state: dict[str, Any] = {**pod(node="n", terminationGracePeriodSeconds=of_spec), "status": {}}
    state["metadata"] |= {"uid": "u", "resourceVersion": "1", "generation": 1}
    ends: list[str] = []
    for grace in graces:
        plan = plan_deletion(state, DeleteOptions(grace_period_s=grace), now=NOW)
        ends.append(plan.marked["metadata"]["deletionTimestamp"])
        state = plan.marked
        if plan.vanishes:
            assert grace == 0
            break
    assert ends == sorted(ends, reverse=True)
    assert state["metadata"]["generation"] == 2


# ---- collections and namespaces


def test_a_collection_is_deleted_by_selector_and_shown(world: ApiServerHarness, maps: str):
    for name in ("a", "b", "c"):
        world.made(maps, config_map(name, metadata={"labels": {"n": name}}))
    reply = world.ask("DELETE", f"{maps}?labelSelector=n+in+(a,b)")
    assert [item["metadata"]["name"] for item in reply.body["items"]] == ["a", "b"]
    assert [item["metadata"]["name"] for item in world.ask("GET", maps).body["items"]] == ["c"]


def test_a_dry_run_of_a_collection_deletes_nothing(world: ApiServerHarness, maps: str):
    world.made(maps, config_map())
    assert len(world.ask("DELETE", f"{maps}?dryRun=All").body["items"]) == 1
    assert world.ask("GET", f"{maps}/a").status == 200


def test_a_namespace_terminates_until_it_is_finalized(world: ApiServerHarness):
    world.namespace("n")
    reply = world.ask("DELETE", "/api/v1/namespaces/n")
    assert reply.body["status"] == {"phase": "Terminating"}
    assert "deletionGracePeriodSeconds" not in reply.body["metadata"]
    refused = world.ask("POST", "/api/v1/namespaces/n/configmaps", config_map())
    assert refused.status == 403
    world.ask("PUT", "/api/v1/namespaces/n/finalize", {"metadata": {"name": "n"}, "spec": {}})
    assert world.ask("GET", "/api/v1/namespaces/n").status == 404


def test_the_default_namespace_stays(world: ApiServerHarness):
    reply = world.ask("DELETE", "/api/v1/namespaces/default")
    assert reply.message == 'namespaces "default" is forbidden: this namespace may not be deleted'
