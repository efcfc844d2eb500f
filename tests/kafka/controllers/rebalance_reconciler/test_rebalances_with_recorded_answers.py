"""Rebalances, with K19 and K23 to K26, and what a real Cruise Control answered: recorded codes, headers and bodies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plimsoll.kafka.cruise_control.client.client import CruiseControlClient
from plimsoll.web.client import FailureKind, RequestFailed, Response
from tests.kafka.controllers.rebalance_reconciler.rebalance_cluster import RebalanceCluster
from tests.kafka.controllers.rebalance_reconciler.test_rebalance_crashes import OPEN_DEFINITIONS
from tests.kafka.cruise_control.client.recorded import build_response

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.objects.api.kafka import Kafka
    from plimsoll.web.client import Request

BASE = "https://c-cruise-control.kafka.svc:9090/kafkacruisecontrol"
NO_TASKS = Response(status=200, body=b'{"userTasks":[],"version":1}')
IDLE = "state-executor"
MIDWAY = "state-executor-inter-broker-midway"
REAL_TASK = "e4bd08de-d851-49d1-83ba-6e1be9cc11b3"
BODIES = [b"", b"{", b"null", b"[]", b"\xff" * 100, b'{"summary": 7}']


class RecordedControl:
    """A `CruiseControls` and its `HttpClient`: gives recorded answers, one per request, and none that is left over."""

    def __init__(self) -> None:
        self.script: list[str | Response | RequestFailed] = []
        self.requests: list[str] = []

    async def find(self, _kafka: Kafka) -> CruiseControlClient:
        return CruiseControlClient(BASE, web=self)

    async def send(self, request: Request) -> Response | RequestFailed:
        self.requests.append(f"{request.method} {request.url.removeprefix(f'{BASE}/')}")
        answer = self.script.pop(0)
        return build_response(answer) if isinstance(answer, str) else answer


class RecordedCluster(RebalanceCluster):
    """With recorded answers in place of the script."""

    def __init__(self) -> None:
        super().__init__(definitions=OPEN_DEFINITIONS)
        self.recorded = RecordedControl()
        self.controls = self.recorded

    def answer(self, *script: str | Response | RequestFailed) -> None:
        """One pass that gets exactly these answers."""
        self.recorded.script = list(script)
        self.reconcile()
        assert self.recorded.script == [], "it asked for less"

    def execute(self) -> None:
        """A rebalance whose execution has begun."""
        self.create()
        self.answer("add-broker-dryrun-verbose")
        self.annotate("approve")
        self.answer(IDLE, NO_TASKS, "add-broker-real-start")
        assert (self.state(), self.status()["sessionId"]) == ("Rebalancing", REAL_TASK)


@pytest.fixture
def world() -> Iterator[RecordedCluster]:
    with RecordedCluster() as cluster:
        yield cluster


def rename_task(name: str, old: str, new: str) -> Response:
    """A recorded answer about another task."""
    recorded = build_response(name)
    return Response(status=recorded.status, body=recorded.body.replace(old.encode(), new.encode()), headers={})


def test_the_life_of_a_rebalance(world: RecordedCluster):
    world.create()
    world.answer("early-rebalance-not-enough-windows")
    assert world.state() == "PendingProposal"
    world.answer("add-broker-dryrun-verbose")
    assert world.state() == "ProposalReady"
    assert world.status()["sessionId"] == "d0940766-1fec-48ff-8841-d057848837e4"
    assert world.status()["optimizationResult"]["numReplicaMovements"] == 54
    world.annotate("approve")
    world.answer(MIDWAY)
    assert world.warnings() == ["CruiseControlExecutorState"], "it waits for an idle executor"
    world.answer(IDLE, NO_TASKS, "add-broker-real-start")
    assert (world.state(), world.status()["sessionId"]) == ("Rebalancing", REAL_TASK)
    world.answer(rename_task("user-tasks-in-execution", "697c2dd4-c0b0-4858-8405-cdea3a236636", REAL_TASK), MIDWAY)
    config_map = world.config_map()
    assert config_map is not None
    assert config_map["data"]["completedByteMovementPercentage"] == "16"
    assert json.loads(config_map["data"]["executorState.json"])["numFinishedPartitionMovements"] == 9
    world.answer(
        rename_task("user-tasks-in-execution", "697c2dd4-c0b0-4858-8405-cdea3a236636", REAL_TASK),
        "state-executor-leader-movement-task-in-progress",
    )
    config_map = world.config_map()
    assert config_map is not None
    assert config_map["data"]["completedByteMovementPercentage"] == "16", "numbers that are left out keep the last ones"
    world.answer("add-broker-user-task-completed")
    assert (world.state(), world.warnings()) == ("Ready", [])
    posts = [request for request in world.recorded.requests if request.startswith("POST")]
    query = "add_broker?json=true&dryrun={}&verbose=true&skip_hard_goal_check=false&brokerid=3"
    assert posts == [f"POST {query.format(dry_run)}" for dry_run in ("true", "true", "false")]


def test_a_slow_computation(world: RecordedCluster):
    world.create(spec={})
    world.answer("async-202-first")
    session = world.status()["sessionId"]
    assert (world.state(), session) == ("PendingProposal", "10b0f01f-ab68-45e2-af35-064891245e7b")
    world.answer("async-user-task")
    assert (world.state(), world.writes) == ("PendingProposal", [])
    world.answer("error-servlet-capacity")
    assert (world.state(), world.warnings()) == ("PendingProposal", [])
    world.answer("user-tasks-unknown-id", "async-200-final")
    assert world.state() == "ProposalReady"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("error-remove-broker-not-enough-racks", "OptimizationFailureException"),
        ("error-missing-hard-goals", "IllegalArgumentException"),
        ("add-broker-too-early-1", "IllegalArgumentException"),
        ("error-bad-regex", "CruiseControlRestException"),
        ("auth-user-post-rebalance", "CruiseControlRestException"),
    ],
)
def test_k19_errors_that_wait_for_a_user(world: RecordedCluster, name: str, reason: str):
    world.create()
    world.answer(name)
    assert (world.state(), world.reason()) == ("NotReady", reason)
    world.answer()
    assert world.writes == []
    world.annotate("refresh")
    world.answer("add-broker-dryrun-verbose")
    assert (world.state(), world.annotations()) == ("ProposalReady", {})


def test_a_password_that_is_refused_is_read_again(world: RecordedCluster):
    world.create()
    world.answer("auth-none")
    assert (world.state(), world.reason()) == ("NotReady", "CruiseControlAccessMissingException")
    world.answer("add-broker-dryrun-verbose")
    assert world.state() == "ProposalReady"


def test_a_second_execution_is_waited_for(world: RecordedCluster):
    world.create()
    world.answer("add-broker-dryrun-verbose")
    world.annotate("approve")
    world.answer(IDLE, NO_TASKS, "error-second-execution")
    assert (world.state(), world.reason()) == ("NotReady", "CruiseControlExecutionInProgressException")
    world.answer(MIDWAY)
    assert world.state() == "NotReady"
    world.answer(IDLE, "add-broker-dryrun-verbose")
    assert world.state() == "ProposalReady"


def test_k23_a_stop(world: RecordedCluster):
    world.execute()
    world.annotate("stop")
    running = rename_task("user-tasks-in-execution", "697c2dd4-c0b0-4858-8405-cdea3a236636", REAL_TASK)
    world.answer(running, "stop-while-executing")
    assert (world.state(), world.annotations()) == ("Stopped", {})


def test_k24_a_wrong_annotation_is_named_and_left(world: RecordedCluster):
    world.execute()
    world.answer("add-broker-user-task-completed")
    world.annotate("approve")
    world.answer()
    assert (world.state(), world.warnings()) == ("Ready", ["InvalidAnnotation"])
    assert world.annotations() == {"strimzi.io/rebalance": "approve"}


def test_k25_a_lost_session_becomes_a_new_proposal(world: RecordedCluster):
    world.execute()
    world.answer("user-tasks-unknown-id", "add-broker-dryrun-verbose")
    assert (world.state(), world.status()["sessionId"]) == ("ProposalReady", "d0940766-1fec-48ff-8841-d057848837e4")


def test_k26_an_unreachable_cruise_control_is_waited_for(world: RecordedCluster):
    world.create()
    world.answer(RequestFailed(problem="connection refused", kind=FailureKind.UNCONNECTED))
    assert (world.state(), world.reason()) == ("NotReady", "CruiseControlRetriableConnectionException")
    world.answer("add-broker-dryrun-verbose")
    assert (world.state(), world.annotations()) == ("ProposalReady", {})


HTML = Response(status=200, body=b"<html><body>Sign in</body></html>", headers={"content-type": "text/html"})
HALF = build_response("add-broker-dryrun-verbose")
HALF = Response(status=200, body=HALF.body[: len(HALF.body) // 2], headers=HALF.headers)
TOO_LARGE = RequestFailed(problem="c-cruise-control answers with more than 67108864 bytes")


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (HTML, "<html>"),
        (HALF, "not JSON"),
        (TOO_LARGE, "more than 67108864 bytes"),
        ("remove-broker-dryrun-verbose", "another cluster: it does not know broker 12"),
        *(
            (Response(status=200, body=body, headers={"user-task-id": REAL_TASK}), "Cruise Control answers")
            for body in BODIES
        ),
    ],
    ids=["html", "half", "large", "other-cluster", *(repr(body[:20]) for body in BODIES)],
)
def test_an_answer_that_cannot_be_used_is_named_and_other_clusters_go_on(
    world: RecordedCluster, answer: Response | RequestFailed | str, words: str
):
    world.make_kafka("other")
    world.create("bad", spec={"mode": "add-brokers", "brokers": [12]})
    world.create("good", cluster="other")
    world.answer(answer, "add-broker-dryrun-verbose")
    assert (world.state("bad"), world.state("good")) == ("NotReady", "ProposalReady")
    assert words in world.message("bad")
