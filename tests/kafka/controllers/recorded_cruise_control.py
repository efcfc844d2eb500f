"""A Cruise Control behind HTTP that answers with bodies recorded from a real one, and moves simulated replicas.

Ids of tasks and brokers in the bodies are those of the request; everything else is as it was recorded. An execution
ends when the simulated brokers have moved what it asked for.
"""

from __future__ import annotations

import copy
import json
import uuid
from base64 import b64encode
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

from plimsoll.local.kafka.answers import NoAnswer
from plimsoll.web.client import RequestFailed, Response
from tests.kafka.cruise_control.client.recorded import build_response, read_recorded

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.kafka.cluster import SimulatedKafka
    from plimsoll.web.client import Request

    Targets = dict[tuple[str, int], tuple[int, ...]]


class RecordedCruiseControl:
    """`find`: the brokers of the cluster; None: they do not run yet."""

    def __init__(self, find: Callable[[], SimulatedKafka | None]) -> None:
        self._find = find
        self.fails = False
        """Proposals end with the recorded OptimizationFailureException."""
        self.accepted: list[str] = []
        """The requests whose executions were begun, as "add_broker 3"."""
        self.password = ""
        """Of the user rebalance-operator; empty: everyone may do everything."""
        self._tasks: dict[str, tuple[str, str]] = {}
        """Status and URL of each task."""
        self._running = ""
        self._targets: Targets = {}

    async def send(self, request: Request) -> Response | RequestFailed:
        parts = urlsplit(request.url)
        endpoint, query = (
            parts.path.rpartition("/")[2],
            {key: values[0] for key, values in parse_qs(parts.query).items()},
        )
        if self._find() is None:
            return RequestFailed(problem="cannot reach it: connection refused")
        if self.password and request.headers.get("Authorization") != _write_basic(self.password):
            return build_response("auth-wrong")
        self._follow()
        try:
            return self._answer_endpoint(endpoint, parts.query, query)
        except NoAnswer as error:
            return _time_out(endpoint, str(error))

    def _answer_endpoint(self, endpoint: str, text: str, query: dict[str, str]) -> Response:
        match endpoint:
            case "add_broker" | "remove_broker" | "rebalance":
                return self._request(endpoint, text, query)
            case "user_tasks":
                return self._show_tasks(query)
            case "state":
                return self._show_state()
            case "stop_proposal_execution":
                return self._stop()
            case "load":
                return self._show_load()
        return Response(status=404)

    # ---- executions

    def _brokers(self) -> SimulatedKafka:
        found = self._find()
        assert found is not None
        return found

    def _follow(self) -> None:
        """The execution ends when nothing moves any more."""
        if self._running and not self._list_moving():
            status, url = self._tasks[self._running]
            self._tasks[self._running] = ("Completed" if status == "InExecution" else status, url)
            self._running = ""

    def _list_moving(self) -> list[tuple[str, int]]:
        partitions = self._brokers().catch_up().iterate_partitions()
        return [partition.key for partition in partitions if partition.is_reassigning]

    def _request(self, endpoint: str, text: str, query: dict[str, str]) -> Response:
        is_dry = query["dryrun"] == "true"
        brokers = [int(broker) for broker in query.get("brokerid", "").split(",") if broker]
        if not self._brokers().catch_up().brokers.keys() >= set(brokers):
            return _answer(f"error-{endpoint.replace('_', '-')}-does-not-exist")
        if self._running and not is_dry:
            return _answer("error-second-execution")
        targets = self._choose_targets(endpoint, brokers)
        if self.fails or targets is None:
            return _answer("error-remove-broker-not-enough-racks")
        if not is_dry:
            self._brokers().alter_reassignments(dict(targets))
        task = str(uuid.uuid5(uuid.NAMESPACE_URL, f"{endpoint}{len(self._tasks)}"))
        self._tasks[task] = ("Completed" if is_dry else "InExecution", f"POST /kafkacruisecontrol/{endpoint}?{text}")
        if not is_dry:
            self._running = task
            self.accepted.append(f"{endpoint} {query.get('brokerid', '')}")
        recorded = "remove-broker-real-start" if endpoint == "remove_broker" else "add-broker-real-start"
        body = copy.deepcopy(_read("add-broker-dryrun-verbose" if is_dry else recorded)["json"])
        for load in ("loadBeforeOptimization", "loadAfterOptimization"):
            body[load]["brokers"] = self._list_loads(body[load]["brokers"][0])
        return _build(body, task=task)

    def _list_loads(self, recorded: dict[str, Any]) -> list[dict[str, Any]]:
        """The recorded load for every broker that runs."""
        running = [broker.id for broker in self._brokers().catch_up().brokers.values() if broker.is_running]
        return [{**recorded, "Broker": broker} for broker in sorted(running)]

    def _choose_targets(self, endpoint: str, brokers: list[int]) -> Targets | None:
        """Every fourth partition gets a new broker; what is on a leaving one goes to another. None: there is none."""
        state = self._brokers().catch_up()
        others = [broker.id for broker in state.brokers.values() if broker.is_running and broker.id not in brokers]
        targets: Targets = {}
        keys = [(topic.name, number) for topic in state.topics.values() for number in topic.partitions]
        for index, key in enumerate(sorted(keys)):
            replicas = list(state.topics[key[0]].partitions[key[1]].replicas)
            if endpoint == "remove_broker":
                free = [broker for broker in others if broker not in replicas]
                if len(free) < len(set(replicas).intersection(brokers)):
                    return None
                new = [free.pop(index % len(free)) if broker in brokers else broker for broker in replicas]
            else:
                chosen = brokers[index % len(brokers)]
                new = replicas if chosen in replicas else [*replicas[:-1], chosen]
            if new != replicas:
                targets[key] = tuple(new)
        return targets

    def _stop(self) -> Response:
        if self._running:
            self._brokers().alter_reassignments(dict.fromkeys(self._list_moving()))
            self._tasks[self._running] = ("CompletedWithError", self._tasks[self._running][1])
        return _answer("stop-while-executing")

    # ---- reads

    def _show_tasks(self, query: dict[str, str]) -> Response:
        asked = query.get("user_task_ids", "").split(",") if query.get("user_task_ids") else list(self._tasks)
        names = {
            "InExecution": "user-tasks-in-execution",
            "Completed": "add-broker-user-task-completed",
            "CompletedWithError": "user-tasks-after-stop",
        }
        listed = []
        for task in asked:
            if task in self._tasks:
                status, url = self._tasks[task]
                [entry] = copy.deepcopy(_read(names[status])["json"]["userTasks"])
                listed.append({**entry, "UserTaskId": task, "RequestURL": url})
        return _build({"userTasks": listed, "version": 1})

    def _show_state(self) -> Response:
        if not self._running:
            return _answer("state-executor")
        body = copy.deepcopy(_read("state-executor-inter-broker")["json"])
        body["ExecutorState"]["triggeredUserTaskId"] = self._running
        return _build(body)

    def _show_load(self) -> Response:
        body = copy.deepcopy(_read("load")["json"])
        body["brokers"] = self._list_loads(body["brokers"][0])
        return _build(body)


def _time_out(endpoint: str, problem: str) -> Response:
    """What a real one answers when the brokers do not answer it."""
    cause = f"org.apache.kafka.common.errors.TimeoutException: {problem}"
    message = f"Error processing POST request '/{endpoint}' due to: '{cause}'."
    return _build({**_read("error-second-execution")["json"], "errorMessage": message}, status=500)


def _write_basic(password: str) -> str:
    return f"Basic {b64encode(f'rebalance-operator:{password}'.encode()).decode()}"


def _read(name: str) -> Any:
    return read_recorded(name)["response"]


def _answer(name: str, *, task: str = "") -> Response:
    recorded = _read(name)
    return _build(recorded["json"], status=recorded["status"], task=task)


def _build(body: Any, *, status: int = 200, task: str = "") -> Response:
    headers = {"content-type": "application/json", "user-task-id": task or str(uuid.uuid5(uuid.NAMESPACE_URL, "read"))}
    return Response(status=status, body=json.dumps(body).encode(), headers=headers)
