"""Parts fail while replicas move between real brokers: brokers, controller, operator, API server, a disk."""

from __future__ import annotations

import random
import subprocess
import sys
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

import pytest
from msgspec.structs import replace

from plimsoll.kafka.brokers.ports import ConfigOperation
from tests.e2e.kafka.admins import (
    FOLLOWER_RATE,
    FOLLOWER_REPLICAS,
    LEADER_RATE,
    LEADER_REPLICAS,
    change_broker,
    change_topic,
)
from tests.e2e.kafka.record_traffic import RecordTraffic
from tests.e2e.kafka.scaling.kafka_chain import CONTROLLER_POD, MOVING
from tests.e2e.timeouts import PATIENCE_S
from tests.effort import IS_LONG

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from plimsoll.kafka.brokers.ports import ConfigChange
    from tests.e2e.kafka.scaling.kafka_chain import KafkaChain

TOPICS = [f"failing-{number}" for number in range(4)]
NEW = 3
POD = "my-cluster-brokers-3"
MB = 1_000_000
FIRST_CALL, STEP = (12, 1) if IS_LONG else (30, 30)
"""The operator ends after this many calls, the next one after `STEP` more."""
KILLS = 10 if IS_LONG else 3


@pytest.fixture(scope="module")
def written(chain: KafkaChain) -> Iterator[KafkaChain]:
    """Moves take some seconds."""
    chain.create_topics(TOPICS)
    chain.limit_replication(2 * MB)
    yield chain
    chain.limit_replication(5 * MB)


@pytest.fixture
def traffic(written: KafkaChain) -> Iterator[RecordTraffic]:
    """A cluster of three brokers. Records are written and read all the time; each acknowledged one is read in order."""
    written.restore()
    with RecordTraffic(written.bootstrap, TOPICS) as running:
        yield running
        running.finish()
    assert sum(map(len, running.acknowledged.values())) > len(TOPICS)
    assert running.list_unread() == []
    assert running.list_disordered() == []


@pytest.mark.usefixtures("traffic")
def test_the_controller_and_then_a_destination_are_killed_and_come_back(written: KafkaChain):
    chain = written
    chain.limit_replication(MB)
    chain.scale(4)
    chain.wait_for_state(MOVING)
    chain.limit_replication(2 * MB)
    chain.kill_node(CONTROLLER_POD)
    chain.up.until(lambda: chain.count_restarts_of(CONTROLLER_POD) == 1, "the controller is back")
    chain.kill_node(POD)
    chain.up.until(lambda: chain.count_restarts_of(POD) == 1, "the broker is back")
    chain.wait_until_grown(NEW)
    chain.wait_until_done()
    chain.shrink()
    assert set(chain.count_replicas()) == {0, 1, 2}


@pytest.mark.usefixtures("traffic")
def test_a_destination_that_stays_dead_is_given_up_and_can_be_removed(written: KafkaChain):
    chain = written
    chain.scale(4)
    chain.wait_for_state(MOVING)
    with chain.keep_down(POD):
        chain.wait_for_state("NotReady")
        assert chain.ask(lambda admin: admin.list_reassignments()) == {}
        shown = str(chain.list_conditions("kafkarebalances", "my-cluster-auto-rebalancing-add-brokers"))
        assert "the destination is down: broker 3" in shown
        chain.scale(3)
        chain.wait_until_shrunk(NEW)
        chain.wait_until_done()
    assert set(chain.count_replicas()) == {0, 1, 2}


@pytest.mark.usefixtures("traffic")
def test_an_operator_that_ends_after_its_calls(written: KafkaChain, capsys: pytest.CaptureFixture[str]):
    chain = written

    def is_grown() -> bool:
        return bool(chain.count_replicas().get(NEW)) and is_over()

    def is_shrunk() -> bool:
        return chain.list_registered() == [0, 1, 2] and is_over()

    def is_over() -> bool:
        is_idle = chain.read_state() in {"Ready", "Idle", ""} and not chain.up.objects("kafkarebalances", "-n", "kafka")
        return is_idle and not chain.list_leftovers()

    with chain.without_operator():
        chain.scale(4)
        ends = [run_through_ends(chain, is_grown)]
        chain.scale(3)
        ends.append(run_through_ends(chain, is_shrunk))
    with capsys.disabled():
        sys.stdout.write(f"\noperator on real brokers: {ends[0]} ends in a scale-up, {ends[1]} in a scale-down\n")
    assert min(ends) >= 3
    assert set(chain.count_replicas()) == {0, 1, 2}


def run_through_ends(chain: KafkaChain, is_done: Callable[[], bool]) -> int:
    """Start operators that end after some calls, until all is done with nothing left. Gives their number."""
    ends, calls = 0, FIRST_CALL
    until_s = time.monotonic() + 3 * PATIENCE_S
    while not is_done():
        chain.start_operator(exit_after=calls)
        operator = chain.operator
        assert operator is not None
        while operator.poll() is None and not is_done():
            assert time.monotonic() < until_s, chain.read_state()
            time.sleep(0.2)
        ends += operator.poll() is not None
        chain.kill_operator()
        calls += STEP
    return ends


@pytest.mark.usefixtures("traffic")
def test_operator_and_api_server_are_killed_at_random(written: KafkaChain):
    chain, dice = written, random.Random(5)
    chain.scale(4)
    chain.wait_for_state(MOVING)
    for _ in range(KILLS):
        chain.kill_operator()
        chain.start_operator()
        time.sleep(dice.uniform(0.5, 3))
    chain.kill_server()
    time.sleep(1)
    chain.start_server()
    chain.wait_until_grown(NEW)
    chain.wait_until_done()
    chain.shrink()
    assert set(chain.count_replicas()) == {0, 1, 2}
    assert [chain.count_restarts_of(f"my-cluster-brokers-{broker}") for broker in range(3)] == [0, 0, 0]


@pytest.mark.usefixtures("traffic")
def test_throttles_and_reassignments_of_others_are_left_alone(written: KafkaChain):
    chain = written
    chain.create_assigned_topic("foreign", {0: [0, 1]})
    chain.produce("foreign", 25 * MB)
    theirs = [change_topic("foreign", key, ConfigOperation.SET, "*") for key in (LEADER_REPLICAS, FOLLOWER_REPLICAS)]
    chain.change_settings([*theirs, *limit_brokers(MB // 2)])
    chain.reassign({("foreign", 0): [0, 2]})
    chain.scale(4)
    chain.wait_for_state(MOVING)
    found = {str(place): moving.adding for place, moving in chain.ask(lambda admin: admin.list_reassignments()).items()}
    assert found["foreign-0"] == (2,), "theirs is not changed"
    chain.change_settings(limit_brokers(50 * MB))
    chain.wait_until_grown(NEW)
    chain.wait_for_state("Ready")
    chain.up.until(lambda: chain.list_replicas("foreign") == {0: (0, 2)}, "their reassignment has ended as they asked")
    theirs += limit_brokers(50 * MB)
    left = {f"{change.resource.name} {change.key}={change.value}" for change in theirs}
    chain.up.until(lambda: set(chain.list_leftovers()) == left, "their throttles are left, ours are gone")
    chain.change_settings([replace(change, operation=ConfigOperation.DELETE, value="") for change in theirs])
    chain.shrink()
    chain.delete_topics(["foreign"])


def limit_brokers(rate: int) -> list[ConfigChange]:
    return [
        change_broker(broker, key, ConfigOperation.SET, str(rate))
        for broker in range(3)
        for key in (LEADER_RATE, FOLLOWER_RATE)
    ]


@pytest.mark.usefixtures("traffic")
def test_a_disk_that_runs_full_costs_nothing_and_the_scaling_goes_on_when_there_is_room(written: KafkaChain):
    chain = written
    with small_file_system(chain.find_node_directory(POD) / "var", megabytes=64) as disk:
        chain.scale(4)
        chain.wait_for_state(MOVING)
        junk = disk / "junk"
        fill(junk)
        chain.up.until(lambda: chain.count_restarts_of(POD) is None, "the broker has ended")
        assert chain.list_registered() == [0, 1, 2, NEW]
        junk.unlink()
        chain.up.until(lambda: chain.count_restarts_of(POD), "the broker is back")
        chain.up.until(lambda: chain.read_state() in {"NotReady", "Ready"}, "the execution has ended")
        if chain.read_state() == "NotReady":
            rebalance = "kafkarebalance/my-cluster-auto-rebalancing-add-brokers"
            chain.up.kubectl("annotate", rebalance, "-n", "kafka", "strimzi.io/rebalance=refresh")
        chain.wait_until_grown(NEW)
        chain.wait_until_done()
        chain.shrink()


@contextmanager
def small_file_system(directory: Path, *, megabytes: int) -> Iterator[Path]:
    directory.mkdir(parents=True, exist_ok=True)
    mounting = ["mount", "-t", "tmpfs", "-o", f"size={megabytes}m", "tmpfs", str(directory)]
    if subprocess.run(mounting, capture_output=True, check=False).returncode != 0:
        pytest.skip("NOT TESTED: no file system can be mounted here")
    try:
        yield directory
    finally:
        subprocess.run(["umount", "-l", str(directory)], check=True)


def fill(path: Path) -> None:
    """Take all space that is left."""
    with path.open("wb", buffering=0) as file:
        try:
            while True:
                file.write(bytes(MB))
        except OSError:
            return
