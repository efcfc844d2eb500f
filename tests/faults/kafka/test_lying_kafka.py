"""Whatever the API server, the brokers and Cruise Control answer, no broker goes that is wanted or holds replicas.

`make test` runs a few cells of the grid, `make test-e2e` a part of it, `make test-long` all of it. A summary says how
many cells were run.
"""

from __future__ import annotations

import random
import sys
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kafka.controllers.cluster_observer import KafkaObserver
from plimsoll.kafka.engine import broker_view
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.kafka.lying_kafka import SCENARIOS, Cell, list_cells, run_cell
from tests.faults.lies import Lie
from tests.kube.leases.stolen_leases import StolenLease

if TYPE_CHECKING:
    from collections.abc import Sequence

PART = 10
"""The number of cells in `make test`."""
AN_OLD_POOL = Cell("an empty broker", Read("list", "kafkanodepools"), Lie.STALE)
A_STOLEN_LEASE = Cell("a broker leaves", Read("list", "strimzipodsets"), Lie.LEASE_STOLEN)
NO_TOPICS = Cell("a broker leaves", Read("brokers", "topics"), Lie.EMPTY)


def run_cells(cells: Sequence[Cell], capsys: pytest.CaptureFixture[str]) -> None:
    found = {str(cell): run_cell(cell) for cell in cells}
    wrongs = {cell: verdict.wrongs for cell, verdict in found.items() if verdict.wrongs}
    struck = sum(verdict.struck > 0 for verdict in found.values())
    with capsys.disabled():
        sys.stdout.write(
            f"\n{len(found)} cells, {struck} with falsified answers, {len(wrongs)} with wrongful removals of brokers\n"
        )
    assert wrongs == {}
    assert {read for verdict in found.values() for read in verdict.unlisted} == set(), "the grid has every read"
    assert struck > len(found) / 3


def test_no_broker_is_removed_on_a_lie(capsys: pytest.CaptureFixture[str]):
    run_cells(
        [AN_OLD_POOL, NO_TOPICS, A_STOLEN_LEASE, *random.Random("kafka lies").sample([*list_cells()], PART)], capsys
    )


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_no_broker_is_removed_on_any_lie(scenario: str, capsys: pytest.CaptureFixture[str]):
    whole = [cell for cell in list_cells() if cell.scenario == scenario]
    run_cells(random.Random(scenario).sample(whole, share_of(len(whole))), capsys)


# ---- without each guard


async def confirm_nothing(*_args: Any) -> None:
    return None


async def find_no_logs(*_args: Any) -> bool:
    return False


@pytest.mark.parametrize(
    ("place", "name", "instead", "cell"),
    [
        (KafkaObserver, "confirm_pools", confirm_nothing, AN_OLD_POOL),
        (broker_view, "_has_logs", find_no_logs, NO_TOPICS),
    ],
    ids=["pools are read again", "brokers list their logs"],
)
def test_without_a_guard_cells_fail(place: Any, name: str, instead: Any, cell: Cell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(place, name, instead)
    assert run_cell(cell).wrongs


def test_a_process_that_ignores_the_theft_of_its_lease_removes_the_broker(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(StolenLease, "confirm", confirm_nothing)
    monkeypatch.setattr(StolenLease, "limit_duration_s", lambda _, wanted_s: wanted_s)
    assert "c-p-3 was deleted without the lease" in run_cell(A_STOLEN_LEASE).wrongs
