"""Cruise Control's API while real data moves: the phases of an execution, its progress, and the bytes it reports."""

from __future__ import annotations

import json
import re
import threading
import time
from http.client import HTTPConnection
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from plimsoll.kafka.executor.phases.copied_bytes import SAMPLE_S
from plimsoll.kafka.model.executions import ExecutorState
from tests.e2e.kafka.cruise_control.test_cccli import serve
from tests.kafka.cruise_control.server.test_conformance import (
    DIFFERENCES,
    NAMES,
    OWN_LINES,
    compare_shape,
    list_line_shapes,
    read_answer,
)

if TYPE_CHECKING:
    from types import TracebackType

    from tests.e2e.kafka.real_kafka import RealKafka

NEW = 3
PARTITIONS = 8
PARTITION_BYTES = 6_000_000
SLOWLY = ("--concurrency", "1", "--leader-concurrency", "1", "--add-parameter", "replication_throttle=2000000")
TOLERANCE = 0.05
LAG_S = SAMPLE_S + 5.0
"""How old the reported bytes of movements under way may be."""
MOVING = "state-executor-inter-broker"
SECOND = "error-second-execution"
RECORDED_STATES = {
    ExecutorState.NO_TASK_IN_PROGRESS: "state-executor",
    ExecutorState.INTER_BROKER_REPLICA_MOVEMENT: MOVING,
    ExecutorState.LEADER_MOVEMENT: "state-executor-leader-movement-task-in-progress",
    ExecutorState.STOPPING_EXECUTION: "state-executor-stopping",
}
FINISHED = ("finishedDataMovement", "numFinishedPartitionMovements", "numFinishedLeadershipMovements")


class Sample(NamedTuple):
    """The state of the executor at one moment."""

    time_s: float
    state: dict[str, Any]
    reported_bytes: int
    """Of the metrics, which do not round to megabytes."""
    log_bytes: int
    """What the new broker holds on its disks, looked at afterwards."""


class StateWatch:
    """Reads state, metrics and log directories all the time, in a thread."""

    def __init__(self, address: str, log_dirs: tuple[str, ...]) -> None:
        self._address = address
        self._log_dirs = [Path(path) for path in log_dirs]
        self._is_ending = threading.Event()
        self._thread = threading.Thread(target=self._run)
        self.samples: list[Sample] = []

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._is_ending.set()
        self._thread.join()

    def _run(self) -> None:
        connection = HTTPConnection(self._address, timeout=60)
        while not self._is_ending.wait(0.01):
            state = json.loads(request(connection, "state?json=true&substates=executor")[1])
            connection.request("GET", "/metrics")
            metrics = connection.getresponse().read().decode()
            found = re.search(r"^plimsoll_kafka_execution_bytes_finished (\S+)", metrics, re.MULTILINE)
            assert found is not None
            self.samples.append(Sample(time.monotonic(), state, int(float(found[1])), self.count_log_bytes()))
        connection.close()

    def has_begun_to_move(self) -> bool:
        """Whether the newest state is that of moving replicas: an execution that starts has no counts yet."""
        moving = ExecutorState.INTER_BROKER_REPLICA_MOVEMENT
        return bool(self.samples) and self.samples[-1].state["ExecutorState"]["state"] == moving.value

    def count_log_bytes(self) -> int:
        total = 0
        for path in (path for directory in self._log_dirs for path in directory.glob("t0-*/*.log")):
            try:
                total += path.stat().st_size
            except FileNotFoundError:
                continue  # the replica has left
        return total


def request(connection: HTTPConnection, target: str, method: str = "GET") -> tuple[int, str]:
    connection.request(method, f"/kafkacruisecontrol/{target}")
    answer = connection.getresponse()
    return answer.status, answer.read().decode()


def test_every_phase_is_reported_as_cruise_control_reports_it(kafka: RealKafka, tmp_path: Path):
    kafka.create_topic("t0", {number: [0, 1, 2] for number in range(PARTITIONS)})
    for number in range(PARTITIONS):
        kafka.produce("t0", partition=number, total_bytes=PARTITION_BYTES)
    kafka.start_broker(NEW)
    with serve(kafka, tmp_path) as server, StateWatch(server.address, kafka.find_log_dirs(NEW)) as watch:
        server.call("add-brokers", str(NEW), *SLOWLY)
        kafka.wait_until(watch.has_begun_to_move, "replicas move")
        _replay_recorded(server.address)
        server.wait_for_end()
        added, held = list(watch.samples), watch.count_log_bytes()
        assert 0 < held < PARTITIONS * PARTITION_BYTES

        server.call("remove-brokers", str(NEW), *SLOWLY)
        kafka.wait_until(lambda: watch.samples[-1].reported_bytes > 0, "data has moved")
        server.call("stop")
        server.wait_for_end()
    stopped = watch.samples[len(added) :]

    assert {sample.state["ExecutorState"]["state"] for sample in watch.samples} >= set(RECORDED_STATES)
    for sample in watch.samples:
        phase = ExecutorState(sample.state["ExecutorState"]["state"])
        if phase in RECORDED_STATES:
            name = RECORDED_STATES[phase]
            compare_shape(sample.state, read_answer(name)["response"]["json"], name)
    _check_that_progress_never_falls(added)
    _check_that_progress_never_falls(stopped)
    _check_bytes(added, held)


def _replay_recorded(address: str) -> None:
    """Every recorded read, and the refusal of a second execution, while one runs; states of the first phase first."""
    connection = HTTPConnection(address, timeout=60)
    names = [name for name in NAMES if name not in DIFFERENCES and _is_replayed(name)]
    names.sort(key=lambda name: (not name.startswith(MOVING), name != SECOND))
    assert names[0].startswith(MOVING)
    assert len(names) > 15
    for name in names:
        recorded = read_answer(name)
        asked, response = recorded["request"], recorded["response"]
        target = f"{asked['path'].removeprefix('/kafkacruisecontrol/')}?{asked['query']}"
        status, body = request(connection, target, asked["method"])
        assert status == response["status"], (name, body[:500])
        if "json" in response:
            compare_shape(json.loads(body), response["json"], name)
        else:
            ours = {line for line in list_line_shapes(body) if not line.startswith(OWN_LINES)}
            assert ours & set(list_line_shapes(response["text"])), name
    connection.close()


def _is_replayed(name: str) -> bool:
    asked = read_answer(name)["request"]
    if name == SECOND:
        return True
    if asked["path"].endswith("/state"):
        return name.startswith(MOVING) or name == "state-bad-substate"
    return asked["method"] == "GET" and not asked["headers"] and "user_task_ids=" not in asked["query"]


def _check_that_progress_never_falls(samples: list[Sample]) -> None:
    """Within an execution."""
    states = [sample.state["ExecutorState"] for sample in samples]
    for before, after in pairwise(states):
        if before.get("triggeredUserTaskId") == after.get("triggeredUserTaskId"):
            for key in set(FINISHED) & set(before) & set(after):
                assert before[key] <= after[key], (key, before, after)


def _check_bytes(samples: list[Sample], held: int) -> None:
    """Reported bytes are those of the log directories, a few seconds ago at most; at the end they are all of them."""
    moving = [sample for sample in samples if "totalDataToMove" in sample.state["ExecutorState"]]
    slack = TOLERANCE * held
    for sample in moving:
        before = [other.log_bytes for other in samples if other.time_s <= sample.time_s - LAG_S]
        assert max(before, default=0) - slack <= sample.reported_bytes <= sample.log_bytes + slack, sample
    assert len({sample.reported_bytes for sample in moving}) >= held // PARTITION_BYTES
    assert abs(moving[-1].reported_bytes - held) <= slack
    assert abs((moving[-1].state["ExecutorState"]["finishedDataMovement"] << 20) - held) <= slack + (1 << 20)
