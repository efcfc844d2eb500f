"""A controller loads its own subsystem, and nothing of another one or of the simulated world."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import sys
from plimsoll.cli.main import main
from plimsoll.kube.client import Client
from plimsoll.operator import process

class Built(BaseException):
    pass

async def answer_nothing(*_arguments, **_options):
    return {}

async def run(self, build):
    build(self.client, None)
    raise Built

# Everything up to the point where the services would start, without a server.
Client.get_json = answer_nothing
process.ControllerProcess.run = run
process.ControllerProcess.check_address = lambda self: None
if sys.argv[1:3] == ["run", "nodes"]:
    from plimsoll.app.node_autoscaling import NodeAutoscalerProcess
    NodeAutoscalerProcess._warn_of_rival = answer_nothing
try:
    main(sys.argv[1:])
except Built:
    print("\\n".join(name for name in sys.modules if name.startswith("plimsoll.")))
"""
SERVER = "--server=http://127.0.0.1:1"


def loaded_by(*arguments: str) -> set[str]:
    """The modules of the process when its parts are made and nothing runs yet."""
    command = [sys.executable, "-c", PROGRAM, *arguments, SERVER]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "plimsoll.operator.process" in ended.stdout, ended.stderr
    return set(ended.stdout.split())


def within(package: str, modules: set[str]) -> list[str]:
    return sorted(name for name in modules if name == package or name.startswith(f"{package}."))


def test_the_tidb_autoscaler_loads_no_other_subsystem():
    loaded = loaded_by("run", "tidb")
    assert within("plimsoll.tidb", loaded)
    assert within("plimsoll.nodes", loaded) == []
    assert within("plimsoll.local", loaded) == []


def test_the_kafka_operator_loads_no_other_subsystem():
    loaded = loaded_by("run", "kafka")
    assert within("plimsoll.kafka.controllers", loaded)
    assert within("plimsoll.nodes", loaded) == []
    assert within("plimsoll.tidb", loaded) == []
    assert within("plimsoll.local", loaded) == []


@pytest.mark.parametrize("provider", ["clusterapi", "simulated"])
def test_the_node_autoscaler_loads_the_simulated_world_only_with_the_simulated_provider(provider: str):
    loaded = loaded_by("run", "nodes", f"--cloud-provider={provider}")
    assert within("plimsoll.nodes", loaded)
    assert within("plimsoll.tidb", loaded) == []
    assert bool(within("plimsoll.local", loaded)) is (provider == "simulated")
