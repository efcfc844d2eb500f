"""A controller loads its own subsystem, and nothing of another one or of the simulated world."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
FLEET_PROGRAM = """
import sys
from plimsoll.app.fleet import process
from plimsoll.cli.main import main

class Built(BaseException):
    pass

async def run(self):
    raise Built

process.FleetProcess.run = run
try:
    main(sys.argv[1:])
except Built:
    print("\\n".join(name for name in sys.modules if name.startswith("plimsoll.")))
"""
SERVER = "--server=http://127.0.0.1:1"
REPOSITORY = Path(__file__).parents[2]


def loaded_by(*arguments: str) -> set[str]:
    """The modules of the process when its parts are made and nothing runs yet."""
    return list_modules(PROGRAM, *arguments, SERVER)


def list_modules(program: str, *arguments: str) -> set[str]:
    command = [sys.executable, "-c", program, *arguments]
    ended = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "plimsoll.cli.main" in ended.stdout, ended.stderr
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


def test_the_fleet_manager_loads_no_other_subsystem(tmp_path: Path):
    configuration = f"--config-dir={REPOSITORY / 'examples' / 'fleet' / 'config'}"
    loaded = list_modules(FLEET_PROGRAM, "run", "fleet", configuration, f"--data={tmp_path}")
    assert within("plimsoll.fleet.workers", loaded)
    for other in ("nodes", "tidb", "kafka", "local"):
        assert within(f"plimsoll.{other}", loaded) == []
