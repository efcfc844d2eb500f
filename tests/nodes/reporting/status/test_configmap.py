"""The status ConfigMap on a server: made, patched, read back after a restart, deleted; and never a reason to stop."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import TYPE_CHECKING, Any

import pytest
import yaml

from plimsoll.core.plans import Reason
from plimsoll.kube.errors import Forbidden, NotSent
from plimsoll.nodes.cluster_state.registry import ClusterState
from plimsoll.nodes.loop_result import ScaleDownPart
from plimsoll.nodes.reporting.status.configmap import StatusConfigMapWriter, read_options_annotation
from tests.kube.embedded_api import EmbeddedApi, ScriptedTransport
from tests.local.apiserver.builders import GUEST
from tests.nodes.cluster_state import builders
from tests.nodes.planning.builders import NOON, policy
from tests.nodes.reporting.loop_results import later, loop_result, unneeded

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.loop_result import LoopResult
    from tests.golden.reviewed_sentences import ReviewedSentences

URL = "/api/v1/namespaces/kube-system/configmaps/cluster-autoscaler-status"


@pytest.fixture
def world() -> Iterator[EmbeddedApi]:
    with EmbeddedApi() as world:
        yield world


def running(seconds: float = 0, **parts: Any) -> LoopResult:
    state = ClusterState(policy())
    state.observe(builders.world(2, *builders.ready_nodes(2)), NOON)
    at = NOON + timedelta(seconds=seconds)
    return later(loop_result(health=state.assess_health(at), **parts), at=at)


def document(world: EmbeddedApi) -> Any:
    return yaml.safe_load(world.ask("GET", URL)["data"]["status"])


def test_it_is_made_when_there_is_none(world: EmbeddedApi):
    writer = StatusConfigMapWriter(world.client)

    assert world.do(writer.write(running())) is None
    found = world.ask("GET", URL)
    assert found["metadata"]["annotations"]["cluster-autoscaler.kubernetes.io/last-updated"].startswith("2026-01-01 12")
    assert document(world)["autoscalerStatus"] == "Running"
    assert writer.uid == found["metadata"]["uid"]


def test_the_last_turn_and_the_options_in_force_stand_beside_it(world: EmbeddedApi, reviewed: ReviewedSentences):
    given = replace(running(), policy=policy(max_cpu="40", kubeconfig="/home/me/config"))
    world.do(StatusConfigMapWriter(world.client).write(given))
    notes = world.ask("GET", URL)["metadata"]["annotations"]
    reviewed(notes["plimsoll.io/last-turn"])
    assert read_options_annotation(notes) == {"max-cpu": 40}


@pytest.mark.parametrize("written", ["", "[]", "no json", "{"])
def test_options_that_were_overwritten_are_not_known(written: str):
    assert read_options_annotation({"plimsoll.io/options": written}) is None


def test_what_others_put_there_stays(world: EmbeddedApi):
    body = {"metadata": {"name": "cluster-autoscaler-status", "labels": {"team": "x"}}, "data": {"own": "y"}}
    world.made("/api/v1/namespaces/kube-system/configmaps", {"apiVersion": "v1", "kind": "ConfigMap", **body})
    world.do(StatusConfigMapWriter(world.client).write(running()))

    found = world.ask("GET", URL)
    assert found["metadata"]["labels"] == {"team": "x"}
    assert found["data"].keys() == {"own", "status"}


def test_times_of_transitions_survive_a_restart(world: EmbeddedApi):
    world.do(StatusConfigMapWriter(world.client).write(running()))
    world.do(StatusConfigMapWriter(world.client).write(running(60)))

    health = document(world)["clusterWide"]["health"]
    assert (health["lastTransitionTime"], health["lastProbeTime"]) == ("2026-01-01T12:00:00Z", "2026-01-01T12:01:00Z")


def test_candidates_are_the_unneeded_nodes(world: EmbeddedApi):
    part = ScaleDownPart(unneeded=(unneeded("n0"), unneeded("n1")))
    world.do(StatusConfigMapWriter(world.client).write(running(scale_down=part)))

    assert document(world)["nodeGroups"][0]["scaleDown"]["candidates"] == 2


def test_a_turn_that_saw_nothing_says_why(world: EmbeddedApi):
    blind = loop_result(ended_early=Reason(code="CannotSee", message="the cloud is gone"), health=None)
    world.do(StatusConfigMapWriter(world.client).write(blind))

    assert document(world) == {
        "time": "2026-01-01 12:00:00 +0000 UTC",
        "autoscalerStatus": "Initializing",
        "message": "the cloud is gone",
    }


def test_without_news_it_is_written_once_a_minute(world: EmbeddedApi):
    writer = StatusConfigMapWriter(world.client)
    world.do(writer.write(running()))
    first = world.ask("GET", URL)["metadata"]["resourceVersion"]
    world.do(writer.write(running(59)))
    assert world.ask("GET", URL)["metadata"]["resourceVersion"] == first
    world.do(writer.write(running(60)))
    assert world.ask("GET", URL)["metadata"]["resourceVersion"] != first


def test_a_deleted_map_is_created_again(world: EmbeddedApi):
    writer = StatusConfigMapWriter(world.client)
    world.do(writer.write(running()))
    world.ask("DELETE", URL)
    world.do(writer.write(running(60)))

    assert document(world)["autoscalerStatus"] == "Running"


def test_it_is_deleted_on_a_clean_exit(world: EmbeddedApi):
    writer = StatusConfigMapWriter(world.client)
    world.do(writer.write(running()))
    assert world.do(writer.delete(policy().operation)) is None
    assert world.server.ask("GET", URL).status == 404
    assert world.do(writer.delete(policy().operation)) is None


def test_the_operator_may_want_none(world: EmbeddedApi):
    world.do(StatusConfigMapWriter(world.client).write(running(options={"write_status_configmap": False})))

    assert world.server.ask("GET", URL).status == 404


def test_a_refusal_is_a_value(world: EmbeddedApi):
    writer = StatusConfigMapWriter(world.new_client(token=GUEST))

    assert isinstance(world.do(writer.write(running())), Forbidden)
    assert isinstance(world.do(writer.delete(policy().operation)), Forbidden)


def test_a_server_that_is_gone_is_a_value(world: EmbeddedApi):
    gone = ScriptedTransport(NotSent("refused"))
    writer = StatusConfigMapWriter(world.new_client(through=lambda _: gone))

    assert isinstance(world.do(writer.write(running())), NotSent)
