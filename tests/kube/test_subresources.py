"""Scale, evict and bind, and what a server says about itself."""

from __future__ import annotations

from typing import Any

import pytest

from plimsoll.kube import discovery
from plimsoll.kube.errors import Conflict, NotFound, ServerFailed
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.kube.subresources import Blocked, Evicted, PodGone
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.workloads import Deployment
from tests.kube.embedded_api import WIDGETS, EmbeddedApi
from tests.local.apiserver.builders import definition, deployment, pod

PODS = "/api/v1/namespaces/here/pods"
BUDGETS = "/apis/policy/v1/namespaces/here/poddisruptionbudgets"


@pytest.fixture
def world():
    with EmbeddedApi() as world:
        world.namespace()
        yield world


def guarded_pod(world: EmbeddedApi, *, allowed: int, name: str = "w") -> None:
    """A running pod under a budget that its controller has seen."""
    world.made(PODS, {**pod("p", node="n"), "metadata": {"name": "p", "labels": {"app": name}}})
    running = {"status": {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]}}
    world.do(world.client.merge_patch(Pod, "p", running, namespace="here", subresource="status"))
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": name}}}
    world.made(BUDGETS, {"metadata": {"name": name}, "spec": spec})
    counts: dict[str, Any] = {
        "observedGeneration": 1,
        "disruptionsAllowed": allowed,
        "currentHealthy": 1 + allowed,
        "desiredHealthy": 1,
        "expectedPods": 1 + allowed,
    }
    patch = {"status": counts}
    world.ask("PATCH", f"{BUDGETS}/{name}/status", patch, content="application/merge-patch+json")


def test_an_eviction_that_is_allowed_ends_the_pod(world: EmbeddedApi):
    world.made(PODS, pod("p"))
    assert world.do(world.client.evict("p", namespace="here")) == Evicted()
    with pytest.raises(NotFound):
        world.do(world.client.get(Pod, "p", namespace="here"))


def test_an_eviction_tried_out_ends_nothing(world: EmbeddedApi):
    world.made(PODS, pod("p"))
    assert world.do(world.client.evict("p", namespace="here", options=DeleteOptions(is_dry_run=True))) == Evicted()
    assert world.do(world.client.get(Pod, "p", namespace="here")).metadata.name == "p"


def test_an_eviction_that_a_budget_forbids_says_why(world: EmbeddedApi):
    guarded_pod(world, allowed=0)
    assert world.do(world.client.evict("p", namespace="here")) == Blocked(
        message="Cannot evict pod as it would violate the pod's disruption budget.",
        reasons=("The disruption budget w needs 1 healthy pods and has 1 currently",),
    )


def test_an_eviction_that_a_budget_allows_is_done(world: EmbeddedApi):
    guarded_pod(world, allowed=1)
    assert world.do(world.client.evict("p", namespace="here")) == Evicted()


def test_a_budget_that_was_not_observed_yet_says_when_to_come_back(world: EmbeddedApi):
    guarded_pod(world, allowed=0)
    patch = {"status": {"observedGeneration": 0}}
    world.ask("PATCH", f"{BUDGETS}/w/status", patch, content="application/merge-patch+json")
    outcome = world.do(world.client.evict("p", namespace="here"))
    assert isinstance(outcome, Blocked)
    assert (outcome.retry_after_s, world.clock.monotonic_s()) == (10, 0)


def test_a_pod_that_is_gone_cannot_be_evicted(world: EmbeddedApi):
    assert world.do(world.client.evict("p", namespace="here")) == PodGone(message='pods "p" not found')


def test_another_pod_of_the_name_is_not_evicted(world: EmbeddedApi):
    world.made(PODS, pod("p"))
    outcome = world.do(world.client.evict("p", namespace="here", options=DeleteOptions(uid="another")))
    assert isinstance(outcome, PodGone)
    assert world.do(world.client.get(Pod, "p", namespace="here")).metadata.name == "p"


def test_two_budgets_are_an_error(world: EmbeddedApi):
    guarded_pod(world, allowed=1)
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "w"}}}
    world.made(BUDGETS, {"metadata": {"name": "other"}, "spec": spec})
    with pytest.raises(ServerFailed, match="more than one PodDisruptionBudget"):
        world.do(world.client.evict("p", namespace="here"))


def test_a_pod_is_bound_to_a_node(world: EmbeddedApi):
    world.made("/api/v1/nodes", {"metadata": {"name": "n"}})
    world.made(PODS, pod("p"))
    world.do(world.client.bind("p", "n", namespace="here"))
    assert world.do(world.client.get(Pod, "p", namespace="here")).spec.node_name == "n"
    with pytest.raises(Conflict, match="already assigned to node"):
        world.do(world.client.bind("p", "m", namespace="here"))


def test_another_pod_of_the_name_is_not_bound(world: EmbeddedApi):
    world.made(PODS, pod("p"))
    with pytest.raises(Conflict):
        world.do(world.client.bind("p", "n", namespace="here", uid="another"))


def test_a_deployment_is_scaled(world: EmbeddedApi):
    world.made("/apis/apps/v1/namespaces/here/deployments", deployment("d"))
    assert world.do(world.client.scale(Deployment, "d", 3, namespace="here")).spec.replicas == 3
    scale = world.do(world.client.get_scale(Deployment, "d", namespace="here"))
    assert (scale.spec.replicas, scale.status.selector) == (3, "app=d")
    assert world.do(world.client.get(Deployment, "d", namespace="here")).spec.replicas == 3


def test_what_changed_meanwhile_is_not_scaled(world: EmbeddedApi):
    world.made("/apis/apps/v1/namespaces/here/deployments", deployment("d"))
    with pytest.raises(Conflict):
        world.do(world.client.scale(Deployment, "d", 3, namespace="here", resource_version="1"))


# ---- discovery


@pytest.mark.parametrize(("minor", "number"), [("34+", 34), ("9", 9), ("", 0), ("x", 0)])
def test_a_providers_version_is_read_as_far_as_it_is_a_number(minor: str, number: int):
    assert discovery.ServerVersion(major="1", minor=minor).number == (1, number)


def test_groups_come_with_their_versions(world: EmbeddedApi):
    groups = {group.name: group.versions for group in world.do(discovery.fetch_groups(world.client))}
    assert (groups[""], groups["apps"]) == (("v1",), ("v1",))


def served(world: EmbeddedApi, api_version: str) -> set[str]:
    return {resource.name for resource in world.do(discovery.fetch_resources(world.client, api_version))}


def test_what_is_served_is_known(world: EmbeddedApi):
    assert {"configmaps", "nodes", "nodes/status"} <= served(world, "v1")
    assert "configmaps/status" not in served(world, "v1")


def test_a_custom_resource_is_served_once_it_is_defined(world: EmbeddedApi):
    assert served(world, WIDGETS.api_version) == set()
    world.made("/apis/apiextensions.k8s.io/v1/customresourcedefinitions", definition())
    assert "widgets" in served(world, WIDGETS.api_version)
