"""Every scenario file of this folder is a test: it runs, and all that it expects holds."""

from __future__ import annotations

from pathlib import Path

import pytest

from plimsoll.simulation.files.scenario_reader import read_scenario
from plimsoll.simulation.runner import run_scenario

REPOSITORY = Path(__file__).parents[2]
FILES = sorted([*Path(__file__).parent.glob("*.yaml"), *(REPOSITORY / "examples" / "scenarios").glob("*.yaml")])


SLOW = {"n18", "n21"}
CASES = [pytest.param(file, id=file.stem, marks=[pytest.mark.slow] if file.stem in SLOW else []) for file in FILES]


@pytest.mark.parametrize("file", CASES)
def test_what_the_file_expects_holds(file: Path):
    story = run_scenario(read_scenario(file.read_bytes(), source=file.name))
    assert [str(failed_expectation) for failed_expectation in story.failed] == []
    assert story.expectations > 0
