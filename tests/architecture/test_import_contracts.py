"""Each contract of .importlinter is broken on purpose, in a scratch package of the same shape, and must notice."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
PACKAGES = ["cli", "simulation", "console", "fleet", "kafka", "tidb", "nodes", "local", "journal", "kube", "runtime"]
PACKAGES += ["operator", "web", "solver", "scheduling", "objects", "core", "nodes.planning", "kafka.planning"]
PACKAGES += ["nodes.cluster_state", "nodes.providers", "nodes.providers.clusterapi", "nodes.providers.simulated"]
PACKAGES += ["nodes.model", "tidb.model", "tidb.planning", "kafka.model", "fleet.model", "fleet.planning"]


def scratch(tmp_path: Path, importer: str = "", imported: str = "") -> Path:
    """A package `plimsoll` with every layer; `importer` imports `imported`."""
    for name in ["", *PACKAGES]:
        folder = tmp_path.joinpath("plimsoll", *name.split("."))
        folder.mkdir(parents=True, exist_ok=True)
        (folder / "__init__.py").write_text("")
    (tmp_path / "plimsoll" / "app.py").write_text("")
    if importer:
        path = tmp_path.joinpath(*importer.split("."))
        module = path / "breach.py" if path.is_dir() else path.with_suffix(".py")
        module.write_text(f"import {imported}\n")
    return tmp_path


def lint(folder: Path) -> subprocess.CompletedProcess[str]:
    command: list[str | Path] = [
        Path(sys.executable).parent / "lint-imports",
        "--no-cache",
        "--config",
        REPOSITORY / ".importlinter",
    ]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def test_a_package_without_breaches_keeps_the_contracts(tmp_path: Path):
    ended = lint(scratch(tmp_path))
    assert ended.returncode == 0, ended.stdout
    assert "8 kept, 0 broken" in ended.stdout


@pytest.mark.parametrize(
    ("importer", "imported"),
    [
        ("plimsoll.app", "plimsoll.cli"),
        ("plimsoll.console", "plimsoll.app"),
        ("plimsoll.fleet", "plimsoll.console"),
        ("plimsoll.nodes", "plimsoll.kafka"),
        ("plimsoll.tidb", "plimsoll.local"),
        ("plimsoll.local", "plimsoll.nodes"),
        ("plimsoll.kube", "plimsoll.nodes"),
        ("plimsoll.runtime", "plimsoll.kube"),
        ("plimsoll.scheduling", "plimsoll.runtime"),
        ("plimsoll.scheduling", "plimsoll.solver"),
        ("plimsoll.objects", "plimsoll.scheduling"),
        ("plimsoll.core", "plimsoll.objects"),
    ],
)
def test_an_import_upwards_or_sideways_is_noticed(tmp_path: Path, importer: str, imported: str):
    ended = lint(scratch(tmp_path, importer, imported))
    assert ended.returncode == 1, ended.stdout
    assert "Imports go downwards only, and subsystems do not import each other BROKEN" in ended.stdout


@pytest.mark.parametrize(
    "importer",
    [
        "plimsoll.core",
        "plimsoll.scheduling",
        "plimsoll.solver",
        "plimsoll.nodes.planning",
        "plimsoll.nodes.cluster_state",
    ],
)
@pytest.mark.parametrize("imported", ["asyncio", "time"])
def test_a_decision_that_waits_or_asks_the_time_is_noticed(tmp_path: Path, importer: str, imported: str):
    ended = lint(scratch(tmp_path, importer, imported))
    assert ended.returncode == 1, ended.stdout
    assert "solver and core are pure BROKEN" in ended.stdout


@pytest.mark.parametrize("imported", ["aiohttp", "random", "logging", "structlog"])
def test_a_plan_that_calls_out_rolls_dice_or_logs_is_noticed(tmp_path: Path, imported: str):
    ended = lint(scratch(tmp_path, "plimsoll.kafka.planning", imported))
    assert ended.returncode == 1, ended.stdout
    assert "solver and core are pure BROKEN" in ended.stdout


@pytest.mark.parametrize(
    "importer", ["plimsoll.nodes.planning", "plimsoll.nodes.providers.simulated", "plimsoll.local"]
)
def test_grpc_outside_the_provider_that_uses_it_is_noticed(tmp_path: Path, importer: str):
    ended = lint(scratch(tmp_path, importer, "grpc"))
    assert ended.returncode == 1, ended.stdout
    assert "Only the external provider speaks gRPC BROKEN" in ended.stdout


@pytest.mark.parametrize(
    ("importer", "imported", "contract"),
    [
        (
            "plimsoll.nodes.providers.simulated",
            "plimsoll.nodes.planning",
            "Providers and cluster state import no planner",
        ),
        ("plimsoll.nodes.cluster_state", "plimsoll.nodes.planning", "Providers and cluster state import no planner"),
        ("plimsoll.nodes.model", "plimsoll.nodes.providers", "The node model imports nothing else of its subsystem"),
        ("plimsoll.tidb.model", "plimsoll.tidb.planning", "The TiDB model imports nothing else of its subsystem"),
        ("plimsoll.kafka.model", "plimsoll.kafka.planning", "The Kafka model imports nothing else of its subsystem"),
        ("plimsoll.fleet.model", "plimsoll.fleet.planning", "The fleet model imports nothing else of its subsystem"),
    ],
)
def test_a_planner_below_its_inputs_is_noticed(tmp_path: Path, importer: str, imported: str, contract: str):
    ended = lint(scratch(tmp_path, importer, imported))
    assert ended.returncode == 1, ended.stdout
    assert f"{contract} BROKEN" in ended.stdout
