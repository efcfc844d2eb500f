"""Whatever the providers of clusters answer, no cluster goes that is in use, needed, or was just made.

`make test` runs a few cells of the grid, `make test-e2e` a part of it, `make test-long` all of it. A summary says how
many cells were run.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.fleet.workers.clusters import creation
from plimsoll.fleet.workers.clusters.provider_calls import ProviderCalls
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.fleet.lying_providers import READS, Cell, list_cells, run_cell
from tests.faults.lies import Lie

if TYPE_CHECKING:
    from collections.abc import Sequence

PART = 6
"""The number of cells in `make test`."""
GONE = Cell("cluster_api", "leaving", Read("get", "clusters"), Lie.EMPTY)
NOT_THERE = Cell("ocm", "being made", Read("get", "clusters"), Lie.EMPTY)
FORGOTTEN = Cell("ocm", "leaving", Read("delete", "clusters"), Lie.EMPTY)


def run_cells(cells: Sequence[Cell], capsys: pytest.CaptureFixture[str]) -> None:
    found = {str(cell): run_cell(cell) for cell in cells}
    wrongs = {cell: verdict.wrongs for cell, verdict in found.items() if verdict.wrongs}
    struck = sum(verdict.struck > 0 for verdict in found.values())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(found)} cells, {struck} with falsified answers, {len(wrongs)} with wrongful removals of clusters\n"
        )
    assert wrongs == {}
    assert {read for verdict in found.values() for read in verdict.unlisted} == set(), "the grid has every read"
    assert struck > len(found) / 3


def test_no_cluster_is_removed_on_a_lie(capsys: pytest.CaptureFixture[str]):
    sample = random.Random("cluster lies").sample([*list_cells()], PART)
    run_cells([GONE, NOT_THERE, FORGOTTEN, *sample], capsys)


@pytest.mark.slow
@pytest.mark.parametrize("provider", READS)
def test_no_cluster_is_removed_on_any_lie(provider: str, capsys: pytest.CaptureFixture[str]):
    whole = [cell for cell in list_cells() if cell.provider == provider]
    run_cells(random.Random(provider).sample(whole, share_of(len(whole))), capsys)


# ---- without each guard


async def confirm_nothing(*_args: Any) -> None:
    return None


def believe(_cluster: Any, found: Any, _listed: Any) -> Any:
    return found


@pytest.mark.parametrize(
    ("place", "name", "instead", "cell"),
    [(ProviderCalls, "confirm_gone", confirm_nothing, GONE), (creation, "_check_absence", believe, NOT_THERE)],
    ids=["a deletion is confirmed by the list", "an absence is confirmed by the list"],
)
def test_without_a_guard_cells_fail(place: Any, name: str, instead: Any, cell: Cell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(place, name, instead)
    assert run_cell(cell).wrongs
