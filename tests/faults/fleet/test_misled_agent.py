"""Whatever the control plane and the API server answer, an agent removes no instance that is wanted.

`make test` runs a few cells of the grid, `make test-e2e` a part of it, `make test-long` all of it. A summary says how
many cells were run.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.agent.planning import intake
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.fleet.misled_agent import KAFKA_LIST, SCENARIOS, Cell, list_cells, run_cell
from tests.faults.lies import Lie

if TYPE_CHECKING:
    from collections.abc import Sequence

PART = 6
"""The number of cells in `make test`."""
HALF_A_LIST = Cell("running", KAFKA_LIST, Lie.HALF)
HALF_A_MAP = Cell("running", Read("get", "configmaps"), Lie.TRUNCATED)
"""Without a pause after a cycle that failed the agent reads the map again and again, and no time passes."""
NO_NAMESPACES = Cell("one is deleted", Read("list", "namespaces"), Lie.EMPTY)


def run_cells(cells: Sequence[Cell], capsys: pytest.CaptureFixture[str]) -> None:
    found = {str(cell): run_cell(cell) for cell in cells}
    wrongs = {cell: verdict.wrongs for cell, verdict in found.items() if verdict.wrongs}
    struck = sum(verdict.struck > 0 for verdict in found.values())
    with capsys.disabled():
        counts = f"{len(found)} cells, {struck} with falsified answers"
        sys.stdout.write(f"\n{counts}, {len(wrongs)} with wrongful removals of instances\n")
    assert wrongs == {}
    assert {read for verdict in found.values() for read in verdict.unlisted} == set(), "the grid has every read"
    assert struck > len(found) / 3


def test_no_instance_is_removed_on_a_lie(capsys: pytest.CaptureFixture[str]):
    sample = random.Random("agent lies").sample([*list_cells()], PART)
    run_cells([HALF_A_LIST, HALF_A_MAP, NO_NAMESPACES, *sample], capsys)


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_instance_is_removed_on_any_lie(scenario: str, capsys: pytest.CaptureFixture[str]):
    whole = [cell for cell in list_cells() if cell.scenario == scenario]
    run_cells(random.Random(scenario).sample(whole, share_of(len(whole))), capsys)


def test_without_the_wait_for_further_lists_a_cell_fails(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(intake, "LISTS_IN_A_ROW", 1)
    assert "the reserved instance was removed" in run_cell(HALF_A_LIST).wrongs
