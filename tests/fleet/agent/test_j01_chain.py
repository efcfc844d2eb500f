"""J01: from a request to moved replicas and back (docs/design/fleet.md 18), twice, with the same bytes.

CI compares the first steps, `make test-long` all of them.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.effort import IS_LONG
from tests.fleet.agent.j01_story import play_and_record

REPOSITORY = Path(__file__).parents[3]
_LONGEST_S = 1800
COMPARED = 10 if IS_LONG else 2
"""Steps that the other process plays."""


@pytest.mark.slow
def test_j01_and_hash_seeds_and_kernels_change_no_byte(tmp_path: Path):
    """This process has some hash seed and compiled kernels, the other one another seed and plain kernels."""
    environment = {**os.environ, "PYTHONHASHSEED": "4242", "PLIMSOLL_KERNELS": "plain"}
    with subprocess.Popen(
        [sys.executable, "-m", "tests.fleet.agent.j01_story", str(COMPARED)],
        env=environment,
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    ) as other:
        here = list(play_and_record(tmp_path))
        there = other.communicate(timeout=_LONGEST_S)[0].splitlines()
    assert other.returncode == 0
    assert (len(here), len(there)) == (10, COMPARED)
    for line, twin in zip(here, there, strict=False):
        assert line == twin, f"differs after {json.loads(line)['step']}"
