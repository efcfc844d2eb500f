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

REPOSITORY = Path(__file__).parents[3]
_LONGEST_S = 1800
COMPARED = 10 if IS_LONG else 2
"""Steps that the other process plays."""


@pytest.mark.slow
def test_j01_and_hash_seeds_and_kernels_change_no_byte():
    """Two processes: one plays the whole story, the other, with another hash seed and plain kernels, a part or all."""
    with (
        _start_story(10, PYTHONHASHSEED="1") as whole,
        _start_story(COMPARED, PYTHONHASHSEED="4242", PLIMSOLL_KERNELS="plain") as part,
    ):
        lines = whole.communicate(timeout=_LONGEST_S)[0].splitlines()
        twins = part.communicate(timeout=_LONGEST_S)[0].splitlines()
    assert (whole.returncode, part.returncode) == (0, 0)
    assert (len(lines), len(twins)) == (10, COMPARED)
    for line, twin in zip(lines, twins, strict=False):
        assert line == twin, f"differs after {json.loads(line)['step']}"


def _start_story(steps: int, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.fleet.agent.j01_story", str(steps)],
        env={**os.environ, **environment},
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
    )
