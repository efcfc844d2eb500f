"""The process of a node: one per directory, and none that outlives the process that started it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.kafka.processes.distribution import (
    DistributionMissing,
    KafkaDistribution,
    find_distribution,
)
from plimsoll.local.kafka.processes.node_process import DirectoryInUse, NodeProcess, is_in_use

if TYPE_CHECKING:
    from pathlib import Path

pytestmark = pytest.mark.skipif(shutil.which("setpriv") is None, reason="NOT TESTED: there is no setpriv on PATH")

STARTER = """
import sys, time
from pathlib import Path
from plimsoll.local.kafka.processes.distribution import KafkaDistribution
from plimsoll.local.kafka.processes.node_process import NodeProcess
node = NodeProcess(KafkaDistribution("", Path("log4j"), Path("archive")), Path(sys.argv[1]))
node.start()
print(node.pid, flush=True)
time.sleep(60)
"""


@pytest.fixture(autouse=True)
def _fake_java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A `java` that sleeps; started with `ignore` in its directory it does not end when asked to.

    It is one process: a child would hold the inherited lock for a moment longer.
    """
    binary = tmp_path / "bin" / "java"
    binary.parent.mkdir()
    binary.write_text(
        "#!/bin/sh\nfor word; do last=$word; done\n"
        '[ -e "$(dirname "$last")/ignore" ] && trap "" TERM\necho started\nexec sleep 60\n'
    )
    binary.chmod(0o755)
    monkeypatch.setenv("PATH", f"{binary.parent}:{os.environ['PATH']}")


def build_node(directory: Path) -> NodeProcess:
    directory.mkdir(exist_ok=True)
    return NodeProcess(KafkaDistribution("", directory / "log4j", directory / "archive"), directory)


def test_a_directory_has_one_process_at_a_time(tmp_path: Path):
    node, other = build_node(tmp_path / "node"), build_node(tmp_path / "node")
    node.start()
    try:
        assert is_in_use(node.directory)
        for attempt in (node, other):
            with pytest.raises(DirectoryInUse):
                attempt.start()
        assert node.exit_code is None
    finally:
        node.stop()
    assert (node.is_running, node.exit_code) == (False, 143)
    assert not is_in_use(node.directory)
    other.start()
    other.stop()


def test_a_process_that_does_not_end_when_asked_to_is_killed(tmp_path: Path):
    node = build_node(tmp_path / "node")
    (node.directory / "ignore").touch()
    node.start()
    _wait_for_word(node)
    node.stop(within_s=0.1)
    assert node.exit_code == 137


def test_a_process_ends_with_the_one_that_started_it_and_holds_the_lock_until_then(tmp_path: Path):
    directory = tmp_path / "node"
    directory.mkdir()
    starter = subprocess.Popen([sys.executable, "-c", STARTER, str(directory)], stdout=subprocess.PIPE, text=True)
    assert starter.stdout is not None
    assert int(starter.stdout.readline())
    assert is_in_use(directory)
    starter.kill()
    starter.communicate()
    until_s = time.monotonic() + 30
    while is_in_use(directory):
        assert time.monotonic() < until_s
        time.sleep(0.01)


def test_what_is_missing_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PATH", str(tmp_path / "nowhere"))
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    with pytest.raises(DistributionMissing) as refused:
        find_distribution()
    for word in ("Java 17", "setpriv", "Maven (mvn)"):
        assert word in str(refused.value)
    monkeypatch.setenv("PLIMSOLL_KAFKA_JARS", str(tmp_path / "jars"))
    with pytest.raises(DistributionMissing, match="PLIMSOLL_KAFKA_JARS"):
        find_distribution()
    (tmp_path / "jars").mkdir()
    with pytest.raises(DistributionMissing, match="which has none"):
        find_distribution()


def test_a_java_that_is_too_old_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    (tmp_path / "jars").mkdir()
    (tmp_path / "jars" / "kafka.jar").touch()
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setenv("PLIMSOLL_KAFKA_JARS", str(tmp_path / "jars"))
    java = tmp_path / "bin" / "java"
    for version, is_enough in (('openjdk version "11.0.2"', False), ("", False), ('openjdk version "17.0.15"', True)):
        java.write_text(f"#!/bin/sh\necho '{version}' >&2\n")
        if is_enough:
            assert find_distribution().class_path == str(tmp_path / "jars" / "kafka.jar")
        else:
            with pytest.raises(DistributionMissing, match="need Java 17 or later"):
                find_distribution()


def _wait_for_word(node: NodeProcess) -> None:
    until_s = time.monotonic() + 30
    while "started" not in node.read_log():
        assert time.monotonic() < until_s
        time.sleep(0.01)
