"""`plimsoll fleet simulate`: a table, JSON, and the same bytes for the same file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import TYPE_CHECKING

import yaml

from tests.cli.runner import plimsoll
from tests.simulation.fleet.day_documents import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path


def write_short(folder: Path) -> Path:
    document = yaml.safe_load(EXAMPLE.read_text()) | {"duration": "2h"}
    document["variants"] = document["variants"][:2]
    document["demand"] = document["demand"][:2]
    file = folder / "day.yaml"
    file.write_text(yaml.safe_dump(document))
    return file


def _run_with_hash_seed(file: Path, seed: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "plimsoll", "fleet", "simulate", "-f", str(file), "-o", "json"]
    environment = {**os.environ, "PYTHONHASHSEED": seed}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_equal_files_give_equal_bytes(tmp_path: Path):
    file = write_short(tmp_path)
    first, second = (_run_with_hash_seed(file, seed) for seed in "12")
    assert first.returncode == 0, first.stderr
    assert first.stdout == second.stdout
    variants = json.loads(first.stdout)["variants"]
    assert [variant["variant"] for variant in variants] == ["as configured", "no slack", "slack 6"]
    assert all(len(variant["histories"]) == variant["created"] for variant in variants)


def test_a_table_has_a_row_per_variant(tmp_path: Path):
    ended = plimsoll("fleet", "simulate", "-f", write_short(tmp_path))
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert len([line for line in lines if line.startswith("no slack")]) == 2
    assert "UNDONE <2H" in lines[0]


def test_another_seed_is_another_day(tmp_path: Path):
    file = write_short(tmp_path)
    outputs = {plimsoll("fleet", "simulate", "-f", file, "--seed", seed).stdout for seed in "12"}
    assert len(outputs) == 2


def test_mistakes_are_lines_and_no_table(tmp_path: Path):
    file = tmp_path / "day.yaml"
    file.write_text("demand: []\nconfiguration: {}\nseed: -1\n")
    ended = plimsoll("fleet", "simulate", "-f", file)
    assert (ended.returncode, ended.stdout) == (2, "")
    assert {line.split(":")[0] for line in ended.stderr.splitlines()} >= {"demand", "seed"}
