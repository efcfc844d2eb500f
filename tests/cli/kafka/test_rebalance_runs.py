"""`plimsoll kafka` on simulated brokers: what is refused or declined is in the journal, and silence is an error."""

from __future__ import annotations

import asyncio
import json
import os
from contextlib import asynccontextmanager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

import pytest
import typer

from plimsoll.app.kafka.simulated_admin import SimulatedAdmin
from plimsoll.cli.kafka import cruise_control, options, rebalancing
from plimsoll.cli.kafka.cluster_lock import lock_cluster
from plimsoll.kafka.executor import execution, executor
from plimsoll.kafka.executor.context import ExecutionContext
from plimsoll.kafka.executor.execution import Execution
from plimsoll.local.kafka.answers import NoAnswer
from plimsoll.local.kafka.cluster import SimulatedKafka
from plimsoll.runtime.clocks import RealClock
from plimsoll.web import serving
from tests.cli.runner import plimsoll

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path

    from tests.cli.runner import CommandResult

MB = 1_000_000


@pytest.fixture
def kafka(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> SimulatedKafka:
    """Four brokers, of which the fourth is empty, behind every --bootstrap."""
    cluster = SimulatedKafka(RealClock())
    for broker in range(4):
        dirs = {"/one": 1 << 40, "/two": 1 << 40}
        cluster.add_broker(broker, rack=f"r{broker % 3}", bytes_per_s=1e12, log_dirs=dirs)
    cluster.create_topic("a", [[n % 3, (n + 1) % 3, (n + 2) % 3] for n in range(6)], size_bytes=MB)

    @asynccontextmanager
    async def connect(_bootstrap: str, _command_config: str) -> AsyncIterator[SimulatedAdmin]:
        yield SimulatedAdmin(cluster)

    for module in (options, rebalancing, cruise_control):
        monkeypatch.setattr(module, "connect", connect)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setattr(ExecutionContext, "wait", check_again_soon)
    return cluster


async def check_again_soon(_context: ExecutionContext) -> None:
    """Brokers that are simulated in real time need no second between two checks."""
    await asyncio.sleep(0.01)


def rebalance(data: Path, *arguments: str) -> CommandResult:
    return plimsoll("kafka", "rebalance", "--bootstrap", "b:1", "--data", data, *arguments)


def add(data: Path, *arguments: str) -> CommandResult:
    return rebalance(data, "--mode", "add-brokers", "--brokers", "3", *arguments)


def explain(data: Path) -> str:
    return plimsoll("why", "broker/3", "--data", data).stdout


@pytest.mark.parametrize("command", [("status",), ("plan",), ("rebalance", "--yes")])
def test_brokers_of_which_none_answers_are_unreachable(kafka: SimulatedKafka, tmp_path: Path, command: tuple[str, ...]):
    kafka.reject("describe_log_dirs", NoAnswer("timed out"), times=100)
    where = ("--data", tmp_path) if command[0] == "rebalance" else ()
    ended = plimsoll("kafka", *command, "--bootstrap", "b:1", *where)
    assert ended.returncode == 4
    assert "no broker answered with its log directories: broker 0 did not answer (" in ended.stderr
    assert not kafka.sent_targets


@contextmanager
def serve_rates(answers: dict[str, float]) -> Iterator[tuple[str, list[str]]]:
    """A Prometheus with a rate of topic a per query; gives its address and the queries that came."""
    asked: list[str] = []

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            fields = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            (query,) = fields["query"]
            asked.append(query)
            rate = answers.get(query)
            series = [{"metric": {"topic": "a"}, "value": [float(fields["time"][0]), str(rate)]}] if rate else []
            data = {"status": "success", "data": {"resultType": "vector", "result": series}}
            body = json.dumps(data).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_arguments: Any) -> None:
            """Write nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}", asked
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.mark.usefixtures("kafka")
def test_own_queries_are_asked_and_used():
    own = ("--prometheus-query", 'bytes-in=sum(mine{cluster="a"})', "--prometheus-query", "bytes-out=theirs")
    with serve_rates({'sum(mine{cluster="a"})': 6e6, "theirs": 3e6}) as (address, asked):
        planned = plimsoll("kafka", "plan", "-b", "b:1", "--prometheus", address, *own, "-o", "json")
    assert planned.returncode == 0, planned.stderr
    assert asked == ['sum(mine{cluster="a"})', "theirs"]
    goals = {goal["goal"]: goal["reason"] or {} for goal in json.loads(planned.stdout)["goals"]}
    assert goals["NetworkInboundUsageDistributionGoal"].get("code") != "NoRates"


@pytest.mark.usefixtures("kafka")
def test_a_query_without_series_is_named_below_the_plan():
    with serve_rates({}) as (address, _):
        arguments = ("--prometheus", address, "--prometheus-query", "bytes-in=misspelt")
        planned = plimsoll("kafka", "plan", "-b", "b:1", *arguments)
    assert planned.returncode == 0
    assert "problem: rates: bytes-in: Prometheus has no series for misspelt" in planned.stdout
    assert "no rates are known" in planned.stdout


@pytest.mark.usefixtures("kafka")
def test_a_run_without_a_terminal_is_held_back_in_the_journal(tmp_path: Path):
    ended = add(tmp_path)
    assert ended.returncode == 2
    assert "receive replicas: held back" in explain(tmp_path)
    assert "nothing is moved without a confirmation" in explain(tmp_path)


@pytest.mark.parametrize("answer", [False, typer.Abort()])
def test_a_declined_run_is_held_back_in_the_journal(
    kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, answer: Any
):
    def confirm(*_arguments: Any, **_options: Any) -> bool:
        if isinstance(answer, BaseException):
            raise answer
        return bool(answer)

    monkeypatch.setattr(rebalancing, "_is_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", confirm)
    ended = add(tmp_path)
    assert ended.returncode == 1
    assert "the user declined; nothing was moved" in ended.stderr
    assert "receive replicas: held back" in explain(tmp_path)
    assert not kafka.sent_targets


@pytest.mark.parametrize("is_under_way", [False, True])
def test_a_plan_whose_replicas_another_client_moved_is_not_executed(
    kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_under_way: bool
):
    """A `rebalance` on another machine begins while the user looks at the plan."""
    kafka.add_broker(4, rack="r0", bytes_per_s=1.0 if is_under_way else 1e12, log_dirs={"/one": 1 << 40})
    foreign = {("a", number): (4, 1, 2) for number in range(6)}

    def confirm(*_arguments: Any, **_options: Any) -> bool:
        kafka.alter_reassignments(foreign)
        return True

    monkeypatch.setattr(rebalancing, "_is_terminal", lambda: True)
    monkeypatch.setattr(typer, "confirm", confirm)
    monkeypatch.setattr(executor, "METADATA_LAG_S", 0.03)
    ended = add(tmp_path)
    assert ended.returncode == 1
    assert "replicas of the plan have moved since it was made, or another client moves them now: a-0" in ended.stderr
    assert "receive replicas: held back" in explain(tmp_path)
    assert {key: targets[0] for key, targets in kafka.sent_targets.items()} == foreign
    assert all(len(targets) == 1 for targets in kafka.sent_targets.values())


@pytest.mark.usefixtures("kafka")
def test_a_refused_run_is_held_back_in_the_journal(tmp_path: Path):
    plimsoll("kafka", "pause", "--reason", "rack b", "--data", tmp_path)
    ended = add(tmp_path, "--yes")
    assert ended.returncode == 1
    assert "paused: rack b" in ended.stderr
    reported = explain(tmp_path)
    assert "receive replicas: held back" in reported
    assert "paused: rack b" in reported


def test_a_run_that_fails_before_it_begins_is_failed_in_the_journal(kafka: SimulatedKafka, tmp_path: Path):
    (tmp_path / "kafka").write_text("not a directory", encoding="utf-8")
    ended = add(tmp_path, "--yes")
    assert ended.returncode == 1
    assert "receive replicas: failed" in explain(tmp_path)
    assert not kafka.sent_targets


def test_moves_between_log_directories_count_for_the_limit_of_unconfirmed_bytes(kafka: SimulatedKafka, tmp_path: Path):
    arguments = ("--mode", "remove-disks", "--log-dirs", "0-/one")
    moving = json.loads(plimsoll("kafka", "plan", "-b", "b:1", *arguments, "-o", "json").stdout)["proposals"]
    size = sum(len(proposal["logDirMoves"]) * proposal["sizeBytes"] for proposal in moving)
    assert size > 0
    asked = rebalance(tmp_path, *arguments, "--max-bytes", str(size - 1))
    assert asked.returncode == 2
    assert "--yes" in asked.stderr
    assert not kafka.requests["alter_replica_log_dirs"]


def test_sizes_that_are_not_known_need_a_confirmation(kafka: SimulatedKafka, tmp_path: Path):
    kafka.create_topic("b", [[0, 1, 2]] * 6, size_bytes=0)
    for partition in kafka.state.topics["b"].partitions.values():
        for log in partition.logs.values():
            log.size = -5
    asked = add(tmp_path, "--max-bytes", str(10**15))
    assert asked.returncode == 2
    assert "--yes" in asked.stderr


@pytest.mark.parametrize("option", ["--resume", "--stop"])
@pytest.mark.parametrize("given", [("--mode", "full"), ("--throttle", "5"), ("--dry-run",)])
@pytest.mark.usefixtures("kafka")
def test_options_of_a_plan_do_not_go_with_an_earlier_run(tmp_path: Path, option: str, given: tuple[str, ...]):
    ended = rebalance(tmp_path, option, *given)
    assert ended.returncode == 2
    assert f"{given[0]}: {option} takes the plan of the earlier run" in ended.stderr


@pytest.mark.usefixtures("kafka")
def test_an_earlier_run_is_finished_with_the_options_of_the_connection(tmp_path: Path):
    ended = rebalance(tmp_path, "--resume", "--yes", "-o", "json")
    assert ended.returncode == 0, ended.stderr
    assert "there is nothing to finish" in ended.stderr


@pytest.mark.parametrize("ending", ["--dry-run", "--yes"])
def test_an_unknown_strategy_is_refused_by_the_name_of_its_option(kafka: SimulatedKafka, tmp_path: Path, ending: str):
    ended = add(tmp_path, "--strategies", "Foo", ending)
    assert ended.returncode == 2
    assert "--strategies: unknown strategy 'Foo'" in ended.stderr
    assert not kafka.sent_targets


def test_a_port_in_use_names_the_option_that_chooses_another():
    with serve_rates({}) as (address, _):
        port = address.rpartition(":")[2]
        ended = plimsoll("kafka", "cruise-control", "--bootstrap", "b:1", "--port", port)
    assert ended.returncode == 2
    assert f"choose another, e.g. --port {int(port) + 1}" in ended.stderr


@pytest.mark.usefixtures("kafka")
def test_a_dry_run_is_held_back_in_the_journal(tmp_path: Path):
    assert add(tmp_path, "--dry-run").returncode == 0
    assert "receive replicas: held back: dry run" in explain(tmp_path)
    assert "kafka: nothing done; held back: " in plimsoll("journal", "--data", tmp_path).stdout


@pytest.mark.parametrize("finish", ["--resume", "--stop"])
def test_an_execution_that_a_later_run_finishes_is_concluded_in_the_journal(
    kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, finish: str
):
    class Killed(BaseException):
        """The process ends."""

    def end_process(*_arguments: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Execution, "run", end_process)
        with pytest.raises(Killed):
            add(tmp_path, "--yes")
    assert "receive replicas: planned" in explain(tmp_path)
    assert add(tmp_path, "--dry-run").returncode == 0
    ended = rebalance(tmp_path, finish)
    assert ended.returncode == (0 if finish == "--resume" else 1), ended.stderr
    assert bool(kafka.sent_targets) is (finish == "--resume")
    assert ("a-0             replicas   ABORTED" in ended.stdout) is (finish == "--stop")
    reported = plimsoll("why", "broker/3", "--data", tmp_path, "--limit", "9").stdout
    assert f"receive replicas: {'done' if finish == '--resume' else 'failed'}" in reported
    assert "planned" not in reported


@pytest.mark.parametrize("output", ["table", "json"])
def test_an_incomplete_removal_prints_its_outcome(kafka: SimulatedKafka, tmp_path: Path, output: str):
    kafka.create_topic("b", [[0, 1, 2]], size_bytes=MB)
    kafka.add_broker(4, rack="r0", bytes_per_s=1.0, log_dirs={"/one": 1 << 40})
    kafka.alter_reassignments({("b", 0): (4, 1, 2)})  # by another client, and not ended in this test
    arguments = ("--mode", "remove-brokers", "--brokers", "0", "--yes", "-o", output)
    ended = rebalance(tmp_path, *arguments, "--destination-brokers", "3")
    assert ended.returncode == 1
    assert "incomplete: broker 0 keeps 1 replica" in ended.stderr
    if output == "json":
        assert json.loads(ended.stdout)["outcome"]["end"] == "Completed"
        assert json.loads(ended.stderr)["error"]["exitCode"] == 1
    else:
        assert "Completed" in ended.stdout


@pytest.mark.parametrize("output", ["table", "json"])
def test_a_removal_is_not_complete_if_partitions_were_created_on_the_broker(
    kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, output: str
):
    async def add_partition(_context: ExecutionContext) -> None:
        if len(kafka.state.topics["a"].partitions) == 6:
            kafka.add_partitions("a", [[3, 1, 2]], size_bytes=MB)
        await asyncio.sleep(0.01)

    assert add(tmp_path, "--yes").returncode == 0
    monkeypatch.setattr(ExecutionContext, "wait", add_partition)
    monkeypatch.setattr(execution, "METADATA_LAG_S", 0.05)
    ended = rebalance(tmp_path, "--mode", "remove-brokers", "--brokers", "3", "--yes", "-o", output)
    assert ended.returncode == 1
    sentence = "broker 3 got 1 replica while it was emptied (a-6): do not switch it off"
    assert sentence in ended.stdout
    if output == "json":
        outcome = json.loads(ended.stdout)["outcome"]
        assert (outcome["end"], outcome["notCompleted"], outcome["notEmptied"]) == ("Failed", [], [3])
    reported = explain(tmp_path)
    assert "give replicas: failed" in reported
    assert sentence in reported
    again = rebalance(tmp_path, "--mode", "remove-brokers", "--brokers", "3", "--yes")
    assert again.returncode == 0, again.stderr


@pytest.mark.usefixtures("kafka")
def test_the_plan_of_a_rebalance_has_its_mode_in_the_title(tmp_path: Path):
    ended = add(tmp_path, "--dry-run")
    assert ended.stdout.startswith("Plan: add-brokers\n")
    assert "dry run: nothing was moved" in ended.stderr


def test_an_unfinished_execution_is_refused_before_anything_is_planned(
    kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    class Killed(BaseException):
        """The process ends."""

    def end_process(*_arguments: Any) -> Any:
        raise Killed

    with monkeypatch.context() as patched:
        patched.setattr(Execution, "run", end_process)
        with pytest.raises(Killed):
            add(tmp_path, "--yes")
    read = kafka.requests["describe_topics"]
    ended = add(tmp_path, "--yes")
    assert ended.returncode == 1
    assert ended.stdout == ""
    assert "is not finished: resume it (--resume) or stop it (--stop) first" in ended.stderr
    assert kafka.requests["describe_topics"] == read
    assert "is not finished" in plimsoll("why", "cluster/kafka", "--data", tmp_path).stdout


@pytest.mark.parametrize(
    ("arguments", "code", "present"),
    [
        (("--mode", "add-brokers", "--brokers", "3", "--yes"), 0, {"plan", "outcome"}),
        (("--mode", "add-brokers", "--brokers", "3", "--dry-run"), 0, {"plan"}),
        (("--mode", "remove-brokers", "--brokers", "3", "--yes"), 0, {"plan"}),
        (("--mode", "remove-brokers", "--brokers", "2", "--yes"), 1, {"refused"}),
        (("--resume",), 0, set()),
        (("--mode", "add-brokers", "--brokers", "9", "--yes"), 2, None),
        (("--mode", "add-brokers", "--brokers", "3"), 2, None),
        (("--goals", "RackAwareGoal", "--yes"), 2, None),
    ],
)
@pytest.mark.usefixtures("kafka")
def test_json_has_one_shape_and_errors_another(
    tmp_path: Path, arguments: tuple[str, ...], code: int, present: set[str] | None
):
    ended = rebalance(tmp_path, *arguments, "-o", "json")
    assert ended.returncode == code
    if present is None:
        assert ended.stdout == ""
        assert json.loads(ended.stderr)["error"]["exitCode"] == code
    else:
        answer = json.loads(ended.stdout)
        assert set(answer) == {"plan", "refused", "outcome"}
        assert {key for key, value in answer.items() if value is not None} == present


def test_a_broker_that_does_not_exist_is_refused_with_those_that_do(kafka: SimulatedKafka, tmp_path: Path):
    ended = rebalance(tmp_path, "--mode", "add-brokers", "--brokers", "9", "--yes")
    assert ended.returncode == 2
    assert "--brokers: broker 9 does not exist; there are 0, 1, 2, 3" in ended.stderr
    assert not kafka.sent_targets


def test_progress_is_in_words(kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    for broker in kafka.state.brokers.values():
        broker.bytes_per_s = 20.0 * MB
    monkeypatch.setattr(rebalancing, "_REPORT_S", 0.05)
    ended = add(tmp_path, "--yes")
    assert ended.returncode == 0, ended.stderr
    assert "moving replicas; " in ended.stderr
    assert "task in progress" not in ended.stderr
    assert "execution.started" not in ended.stderr


def test_two_processes_with_two_data_directories_do_not_execute_on_one_cluster(kafka: SimulatedKafka, tmp_path: Path):
    serve = ("kafka", "cruise-control", "--bootstrap", "b:1", "--port", "0", "--data", tmp_path / "second")
    with lock_cluster(kafka.cluster_id):
        for ended in (add(tmp_path / "first", "--yes"), plimsoll(*serve)):
            assert ended.returncode == 1
            expected = f"process {os.getpid()} executes on cluster simulated, with another --data; one process executes"
            assert expected in ended.stderr
    assert not kafka.sent_targets
    assert "receive replicas: held back" in explain(tmp_path / "first")
    with lock_cluster("another cluster"):
        assert add(tmp_path / "first", "--yes").returncode == 0


@pytest.mark.parametrize("state", ["file", ""])
def test_a_cluster_is_used_without_its_lock_if_no_file_can_be_made(
    kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, state: str
):
    def find_no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    (tmp_path / "file").write_text("", encoding="utf-8")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / state) if state else "")
    monkeypatch.setattr("plimsoll.cli.kafka.cluster_lock.Path.home", find_no_home)
    ended = add(tmp_path, "--yes")
    assert ended.returncode == 0, ended.stderr
    assert "another process on this cluster is not noticed" in ended.stderr
    assert kafka.sent_targets


def test_a_server_names_reassignments_of_others_when_it_starts(
    kafka: SimulatedKafka, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    kafka.create_topic("b", [[0, 1, 2]], size_bytes=MB)
    kafka.add_broker(4, rack="r0", bytes_per_s=1.0, log_dirs={"/one": 1 << 40})
    kafka.alter_reassignments({("b", 0): (4, 1, 2)})
    monkeypatch.setattr(serving, "serve", end_serving)
    ended = plimsoll("kafka", "cruise-control", "--bootstrap", "b:1", "--port", "0", "--data", tmp_path)
    assert "warning: another client reassigns b-0; these reassignments are left alone" in ended.stderr


async def end_serving(*_arguments: Any, **_options: Any) -> None:
    """Return at once."""
