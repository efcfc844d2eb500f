from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.local.apiserver.admission.lagging_driver import LaggingDriver
from tests.local.apiserver.subresources.builders import BUDGETS, PODS, ServerClient, cluster

VIOLATED = "Cannot evict pod as it would violate the pod's disruption budget."


def is_leaving(world: ServerClient, name: str) -> bool:
    reply = world.send("GET", f"{PODS}/{name}")
    return reply.status == 404 or "deletionTimestamp" in reply.body["metadata"]


def test_a_budget_of_other_pods_does_not_matter():
    with cluster() as world:
        world.pod("a")
        world.budget(labels={"app": "other"})
        assert world.evict("a").status == 201
        assert is_leaving(world, "a")


def test_an_empty_selector_covers_every_pod():
    with cluster() as world:
        world.pod("a")
        world.budget(labels={})
        assert world.evict("a").status == 429


def test_a_blocked_pod_is_left_as_it_is():
    with cluster() as world:
        before = world.pod("a")
        world.budget(currentHealthy=1, desiredHealthy=1)
        reply = world.evict("a")
        assert (reply.status, reply.body["message"]) == (429, VIOLATED)
        assert world.get(f"{PODS}/a") == before


@pytest.mark.parametrize("phase", ["Succeeded", "Failed", "Pending"])
def test_a_pod_that_does_no_work_goes_without_asking(phase: str):
    with cluster() as world:
        world.pod("a", phase=phase)
        world.budget()
        assert world.evict("a").status == 201
        assert is_leaving(world, "a")
        assert world.get(f"{BUDGETS}/b")["status"]["disruptionsAllowed"] == 0


def test_an_unready_pod_of_a_healthy_application_goes_uncounted():
    with cluster() as world:
        world.pod("a", ready=False)
        world.budget(currentHealthy=2, desiredHealthy=2)
        assert world.evict("a").status == 201
        assert "disruptedPods" not in world.get(f"{BUDGETS}/b")["status"]


def test_an_unready_pod_of_a_disrupted_application_stays():
    with cluster() as world:
        world.pod("a", ready=False)
        world.budget(currentHealthy=1, desiredHealthy=2)
        assert world.evict("a").status == 429


def test_a_budget_that_could_not_be_computed_says_so():
    with cluster() as world:
        world.pod("a")
        failed = {"type": "DisruptionAllowed", "status": "False", "reason": "SyncFailed", "message": "no scale"}
        world.budget(conditions=[{**failed, "lastTransitionTime": "2026-01-01T00:00:00Z"}])
        (cause,) = world.evict("a").body["details"]["causes"]
        reported = "does not allow evicting pods currently because it failed sync: no scale"
        assert cause["message"] == f"The disruption budget b {reported}"


def test_a_budget_without_room_though_enough_are_healthy_says_only_no():
    with cluster() as world:
        world.pod("a")
        world.budget(currentHealthy=3, desiredHealthy=1)
        (cause,) = world.evict("a").body["details"]["causes"]
        assert cause["message"] == "The disruption budget b does not allow evicting pods currently"


def test_a_budget_with_too_many_unconfirmed_evictions_is_closed():
    with cluster() as world:
        world.pod("a")
        disrupted = {f"p{number}": "2026-01-01T00:00:00Z" for number in range(2001)}
        world.budget(disruptionsAllowed=1, disruptedPods=disrupted)
        reply = world.evict("a")
        reported = "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        assert reply.status == 403
        assert reply.body["message"] == f'poddisruptionbudget.policy "b" is forbidden: {reported}'


def test_a_dry_run_by_the_query_changes_nothing():
    with cluster() as world:
        before = world.pod("a")
        world.budget(disruptionsAllowed=1)
        reply = world.send("POST", f"{PODS}/a/eviction", {"metadata": {"name": "a"}}, dryRun="All")
        assert reply.status == 201
        assert world.get(f"{PODS}/a") == before
        assert world.get(f"{BUDGETS}/b")["status"]["disruptionsAllowed"] == 1


def test_a_version_the_caller_names_must_be_the_current_one():
    with cluster() as world:
        version = world.pod("a")["metadata"]["resourceVersion"]
        stale = {"preconditions": {"resourceVersion": "1"}}
        reply = world.evict("a", deleteOptions=stale)
        reported = "the ResourceVersion in the precondition (1) does not match the ResourceVersion in record"
        assert (reply.status, reported in reply.body["message"]) == (409, True)
        assert world.evict("a", deleteOptions={"preconditions": {"resourceVersion": version}}).status == 201


def test_a_body_that_is_no_eviction_is_refused_with_gos_words():
    with cluster() as world:
        world.pod("a")
        reply = world.evict("a", deleteOptions={"gracePeriodSeconds": "soon"})
        assert reply.status == 400
        assert 'Eviction in version "v1" cannot be handled as a Eviction: json: cannot unmarshal' in reply.text.replace(
            '\\"', '"'
        )


@given(
    allowed=st.integers(0, 3),
    victims=st.lists(st.integers(0, 4), min_size=1, max_size=8),
    lags=st.lists(st.integers(0, 3), max_size=6),
)
@settings(max_examples=25)
def test_however_many_evict_at_once_no_more_go_than_the_budget_allows(
    allowed: int, victims: list[int], lags: list[int]
):
    with cluster(LaggingDriver(lags)) as world:
        for number in range(5):
            world.pod(f"p{number}")
        world.budget(disruptionsAllowed=allowed, currentHealthy=5, desiredHealthy=5 - allowed, expectedPods=5)
        paths = [(f"{PODS}/p{number}/eviction", {"metadata": {"name": f"p{number}"}}) for number in victims]
        answers = world.send_all(paths)
        gone = {f"p{number}" for number in range(5) if is_leaving(world, f"p{number}")}
        status = world.get(f"{BUDGETS}/b")["status"]
        assert set(answers) <= {201, 429}
        assert len(gone) <= allowed
        assert status["disruptionsAllowed"] <= allowed - len(gone)
        assert set(status.get("disruptedPods", {})) == gone
