"""A broker is added to a live Kafka cluster of 10,000 partitions: proposal, movements, and the cost of the engine.

The same movements are made three ways: sent by hand as one AlterPartitionReassignments, by the executor with no other
limit than the request has, and by a server of `plimsoll kafka cruise-control` that begins with nothing. Between them
the partitions go back. The first two take turns at going first, because brokers get quicker with use, and the medians
are compared. Times are on the clock; the engine's processor time and memory are those of its process.
"""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import URLError
from urllib.request import Request, urlopen

from kafka import KafkaProducer

from benchmarks.kafka_partitions import report
from plimsoll.kafka.brokers.connection_settings import parse_connection_settings
from plimsoll.kafka.brokers.kafka_python import KafkaPythonAdmin
from plimsoll.kafka.brokers.source import describe_cluster
from plimsoll.kafka.executor.executor import Executor
from plimsoll.kafka.executor.record_stores import MemoryExecutionStore
from plimsoll.kafka.model.cluster import build_model
from plimsoll.kafka.model.description import TopicPartition
from plimsoll.kafka.model.executions import ExecutionEnd, ExecutionOptions
from plimsoll.kafka.model.proposals import OptimizationResult
from plimsoll.kafka.model.requests import Mode, RebalanceRequest
from plimsoll.kafka.model.settings import AnalyzerSettings
from plimsoll.kafka.planning.optimizer import optimize
from plimsoll.runtime.clocks import RealClock
from tests.e2e.ports import lasting_port

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from plimsoll.kafka.model.proposals import Proposal
    from tests.e2e.kafka.real_kafka import RealKafka

NEW = 4
RECORD_BYTES = 20_000
"""Per partition. Small ones are the hard case: what the executor adds to the request does not depend on sizes."""
EMPTY_TOPICS = "empty-.*"
AT_ONCE = 1000
REPLICAS = 3
ROUNDS = 5
ROUNDS_S = 900.0
"""No further round begins after this time: on a busy machine one takes minutes."""
_IDLE_S = 20.0
_POLL_S = 0.1
_SETTLE_S = 2.0
_PATIENCE_S = 600.0
_CRUISE_CONTROL = "Cruise Control, 100,000 partitions: windows to fill, 6-24 s for the model and 39 s CPU for the plan"


class Usage(NamedTuple):
    """What a process has used."""

    elapsed_s: float
    cpu_s: float
    peak_mb: float


def measure_executions(kafka: RealKafka, names: Sequence[str], partitions: int) -> Iterator[dict[str, Any]]:
    _fill(kafka, names, partitions)
    kafka.start_broker(NEW)
    report(f"broker {NEW} runs")
    yield from _measure_proposal(kafka.bootstrap)
    yield from asyncio.run(_measure_moves(kafka.bootstrap))
    yield from _measure_engine(kafka.bootstrap)


def _fill(kafka: RealKafka, names: Sequence[str], partitions: int) -> None:
    # Requests with many partitions, which wait for no other replica; those are waited for together.
    producer = KafkaProducer(
        bootstrap_servers=kafka.bootstrap.split(","), acks=1, max_request_size=16 << 20, linger_ms=200
    )
    for name in names:
        for partition in range(partitions):
            producer.send(name, bytes(RECORD_BYTES), partition=partition)
    producer.flush(timeout=_PATIENCE_S)
    producer.close()
    wanted = {name: list(range(partitions)) for name in names}
    kafka.wait_until(
        lambda: _count_filled(kafka, wanted) == len(names) * partitions * REPLICAS,
        "all replicas have the data",
        within_s=_PATIENCE_S,
        every_s=2.0,
    )
    report(f"{len(names) * partitions:,} partitions have data")


def _count_filled(kafka: RealKafka, wanted: dict[str, list[int]]) -> int:
    return sum(
        partition["partition_size"] >= RECORD_BYTES
        for broker in kafka.client.describe_log_dirs(wanted)
        for log_dir in broker["log_dirs"]
        for topic in log_dir["topics"]
        for partition in topic["partitions"]
    )


# ---- a proposal


def _measure_proposal(bootstrap: str) -> Iterator[dict[str, Any]]:
    words = ("kafka", "plan", "--bootstrap", bootstrap, "--mode", "add-brokers", "--brokers", str(NEW), "-o", "json")
    until_s = time.monotonic() + _PATIENCE_S
    while problem := _run_command(*words)[1]:  # the broker that is asked may not know of the new one yet
        report(f"no proposal yet: {problem}")
        assert time.monotonic() < until_s, problem
    runs = [_run_command(*words) for _ in range(3)]
    assert not any(problem for _, problem in runs), runs
    best = min((usage for usage, _ in runs), key=lambda usage: usage.elapsed_s)
    note = f"`plimsoll kafka plan`, {best.cpu_s:.2f} s CPU; {_CRUISE_CONTROL}"
    yield build_row("a proposal from nothing", best.elapsed_s, "s", note=note)


def _run_command(*words: str) -> tuple[Usage, str]:
    """The time that the processes of a person's command take, from its start to its end, and why it failed."""
    began_s, before = time.perf_counter(), _read_children_s()
    command = [sys.executable, "-m", "plimsoll", *words]
    ended = subprocess.run(command, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    problem = ended.stderr or f"exit code {ended.returncode}"
    usage = Usage(time.perf_counter() - began_s, _read_children_s() - before, 0.0)
    return usage, problem if ended.returncode else ""


def _read_children_s() -> float:
    import resource  # noqa: PLC0415 - not on every system

    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


# ---- the same movements in one request and by the executor


async def _measure_moves(bootstrap: str) -> list[dict[str, Any]]:
    async with KafkaPythonAdmin(parse_connection_settings(bootstrap, {})) as admin:
        request = RebalanceRequest(mode=Mode.ADD_BROKERS, brokers=(NEW,), excluded_topics=EMPTY_TOPICS)
        result = optimize(build_model(await describe_cluster(admin)), request, AnalyzerSettings())
        assert isinstance(result, OptimizationResult), result
        proposals = [proposal for proposal in result.proposals if proposal.added][:AT_ONCE]
        forth = {TopicPartition(plan.topic, plan.partition): plan.new_replicas for plan in proposals}
        back = {TopicPartition(plan.topic, plan.partition): plan.old_replicas for plan in proposals}
        by_hand: list[float] = []
        verified: list[float] = []
        executed: list[float] = []

        async def send_at_once() -> None:
            began_s = time.perf_counter()
            by_hand.append(await _reassign(admin, forth))
            await _verify(admin, forth)
            await _elect(admin, proposals)
            verified.append(time.perf_counter() - began_s)
            await _take_back(admin, back)

        async def execute() -> None:
            executed.append(await _execute(admin, proposals))
            await _take_back(admin, back)

        until_s = time.monotonic() + ROUNDS_S
        while not executed or (len(executed) < ROUNDS and time.monotonic() < until_s):
            for move in (execute, send_at_once) if len(executed) % 2 else (send_at_once, execute):
                await move()
            times = f"one request {by_hand[-1]:.1f} s, verified {verified[-1]:.1f} s, executor {executed[-1]:.1f} s"
            report(f"{times}, load {os.getloadavg()[0]:.1f}")
    note = f"{sum(plan.bytes_to_move for plan in proposals) / 1e6:.0f} MB; the median of {len(executed)}"
    name = f"{len(proposals):,} movements"
    ratios = median(executed) / median(verified), median(executed) / median(by_hand)
    return [
        build_row(f"{name} as one AlterPartitionReassignments", median(by_hand), "s", note=note),
        build_row("... seen at a broker, and one election", median(verified), "s", note="the end of an execution"),
        build_row(f"{name} by the executor", median(executed), "s", note="with its checks and leader elections"),
        build_row("executor / one request to the same end", ratios[0], "x", 1.2),
        build_row("executor / one request", ratios[1], "x", 1.2, note="neither verified nor with elections"),
    ]


async def _take_back(admin: KafkaPythonAdmin, back: dict[TopicPartition, tuple[int, ...]]) -> None:
    """Replicas and leaders as before, and brokers that have deleted what they no longer have."""
    await _reassign(admin, back)
    await admin.elect_preferred_leaders(list(back))
    await asyncio.sleep(_SETTLE_S)


async def _reassign(admin: KafkaPythonAdmin, targets: dict[TopicPartition, tuple[int, ...]]) -> float:
    began_s = time.perf_counter()
    errors = [error for error in (await admin.alter_reassignments(targets)).values() if error is not None]
    assert not errors, errors[:3]
    while await admin.list_reassignments():  # noqa: ASYNC110 - Kafka sends no event
        await asyncio.sleep(_POLL_S)
    return time.perf_counter() - began_s


async def _verify(admin: KafkaPythonAdmin, targets: dict[TopicPartition, tuple[int, ...]]) -> None:
    """As `kafka-reassign-partitions --verify`: a broker, which may be behind the controller, shows the new replicas."""
    left = dict(targets)
    while True:
        for topic in await admin.describe_topics({key.topic for key in left}):
            for partition in topic.partitions:
                key = TopicPartition(topic.name, partition.partition)
                if set(left.get(key, ())) == set(partition.replicas):
                    del left[key]
        if not left:
            return
        await asyncio.sleep(_POLL_S)


async def _elect(admin: KafkaPythonAdmin, proposals: Sequence[Proposal]) -> None:
    """The leaders that the executor elects too, all at once."""
    moved = [plan for plan in proposals if plan.old_leader != plan.new_replicas[0]]
    await admin.elect_preferred_leaders([TopicPartition(plan.topic, plan.partition) for plan in moved])


async def _execute(admin: KafkaPythonAdmin, proposals: Sequence[Proposal]) -> float:
    executor = Executor(admin, RealClock(), MemoryExecutionStore())
    options = ExecutionOptions(
        concurrent_partition_movements_per_broker=AT_ONCE, broker_concurrent_leader_movements=AT_ONCE
    )
    began_s = time.perf_counter()
    outcome = await executor.execute("benchmark", proposals, options)
    assert outcome.end is ExecutionEnd.COMPLETED, outcome
    return time.perf_counter() - began_s


# ---- the engine as a process


def _measure_engine(bootstrap: str) -> Iterator[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as data, _run_engine(bootstrap, data) as engine:
        time.sleep(2.0)
        before = engine.look()
        time.sleep(_IDLE_S)
        idle = engine.measure_since(before)
        yield build_row("engine, idle: processor", 100 * idle.cpu_s / idle.elapsed_s, "% of a core", 1.0)
        yield build_row("engine, idle: memory", before.peak_mb, "MB", note="before it has read the cluster")
        before = engine.look()
        engine.add_broker()
        moving = engine.measure_since(before)
    yield build_row("engine, moving: processor", 100 * moving.cpu_s / moving.elapsed_s, "% of a core", 25.0)
    yield build_row("engine, moving: memory", moving.peak_mb, "MB", 500.0, note="the peak")
    note = "from the request to the last election: description, proposal, movements"
    yield build_row("the whole flow", moving.elapsed_s, "s", note=f"{note}; {_CRUISE_CONTROL}")


class _Engine:
    """A server of `plimsoll kafka cruise-control`."""

    def __init__(self, pid: int, base: str) -> None:
        self._pid = pid
        self._base = base

    def look(self) -> Usage:
        fields = Path(f"/proc/{self._pid}/stat").read_text().rpartition(")")[2].split()
        status = Path(f"/proc/{self._pid}/status").read_text()
        (peak,) = (line.split()[1] for line in status.splitlines() if line.startswith("VmHWM:"))
        return Usage(time.perf_counter(), (int(fields[11]) + int(fields[12])) / 100, int(peak) * 1024 / 1e6)

    def measure_since(self, before: Usage) -> Usage:
        now = self.look()
        return Usage(now.elapsed_s - before.elapsed_s, now.cpu_s - before.cpu_s, now.peak_mb)

    def add_broker(self) -> None:
        """Ask for it, and wait until all has moved."""
        query = (
            f"brokerid={NEW}&dryrun=false&json=true&excluded_topics={EMPTY_TOPICS}"
            f"&concurrent_partition_movements_per_broker={AT_ONCE}"
        )
        headers: dict[str, str] = {}
        while True:
            status, task, _ = self._ask("POST", f"add_broker?{query}", headers)
            if status == 200:
                break
            headers = {"User-Task-ID": task}
            time.sleep(_POLL_S)
        while self._read_state() != "NO_TASK_IN_PROGRESS":
            time.sleep(_POLL_S)

    def is_ready(self) -> bool:
        try:
            return bool(self._read_state())
        except (URLError, OSError):
            return False

    def _read_state(self) -> str:
        body = json.loads(self._ask("GET", "state?json=true&substates=executor", {})[2])
        return str(body["ExecutorState"]["state"])

    def _ask(self, method: str, target: str, headers: dict[str, str]) -> tuple[int, str, str]:
        request = Request(f"{self._base}/{target}", method=method, headers=headers)
        with urlopen(request, timeout=_PATIENCE_S) as answer:
            return answer.status, answer.headers.get("User-Task-ID", ""), answer.read().decode()


@contextmanager
def _run_engine(bootstrap: str, data: str) -> Iterator[_Engine]:
    port = lasting_port()
    words = ("kafka", "cruise-control", "--bootstrap", bootstrap, "--port", str(port), "--data", data)
    process = subprocess.Popen([sys.executable, "-m", "plimsoll", *words], stdout=subprocess.DEVNULL)
    try:
        engine = _Engine(process.pid, f"http://127.0.0.1:{port}/kafkacruisecontrol")
        until_s = time.monotonic() + _PATIENCE_S
        while not engine.is_ready():
            assert process.poll() is None
            assert time.monotonic() < until_s
            time.sleep(_POLL_S)
        yield engine
    finally:
        process.terminate()
        process.wait()


def build_row(name: str, value: float, unit: str, at_most: float | None = None, *, note: str = "") -> dict[str, Any]:
    met = None if at_most is None else value <= at_most
    target = "" if at_most is None else f"<= {at_most:g}"
    return {"name": name, "value": value, "unit": unit, "target": target, "met": met, "note": note}
