"""Whatever the API server and the provider answer, nodes that a ProvisioningRequest has booked stay, and it keeps them.

`make test` runs a few cells of the grid, `make test-e2e` a part of it, `make test-false-answers` all of it.
"""

from __future__ import annotations

import random
from typing import Any

import pytest

from plimsoll.kube.informer.reflector.list_verifier import ListVerifier
from plimsoll.nodes.requests import lister
from plimsoll.nodes.requests.lister import RequestLister
from tests.effort import share_of
from tests.faults.faulty_transport import Read
from tests.faults.lies import Lie
from tests.faults.nodes.audited_clusters import AuditedCluster
from tests.faults.nodes.grid import FAULTS, Cell
from tests.faults.nodes.grid import READS as NODE_READS
from tests.faults.nodes.request_grid import READS, list_objects, run_cell

NO_REQUESTS = Cell(Read("list", "provisioningrequests"), Lie.EMPTY)
NO_TEMPLATES = Cell(Read("list", "podtemplates"), Lie.EMPTY)
BAD_REQUEST = Cell(Read("list", "provisioningrequests"), Lie.UNDECODABLE)
BAD_NODE = Cell(Read("list", "nodes"), Lie.UNDECODABLE)
CLOCK = Cell(Read("list", "limitranges"), Lie.CLOCK_AHEAD)


def test_the_grid_has_every_read():
    with AuditedCluster(**{"enable-provisioning-requests": True}) as cluster:
        cluster.minutes(0.75)
        cluster.take({"apply": list_objects()})
        cluster.minutes(0.75)
        assert cluster.faults.seen - {*READS, *NODE_READS} == set()


@pytest.mark.parametrize(
    "cell",
    [
        NO_REQUESTS,
        BAD_REQUEST,
        CLOCK,
        *(pytest.param(cell, marks=pytest.mark.slow) for cell in (NO_TEMPLATES, BAD_NODE)),
    ],
    ids=str,
)
def test_booked_nodes_stay(cell: Cell):
    verdict = run_cell(cell)
    assert (verdict.wrongful, verdict.lost_pods) == ((), ())
    assert verdict.struck


@pytest.mark.slow
@pytest.mark.parametrize("fault", FAULTS)
def test_booked_nodes_stay_with(fault: Lie):
    for read in random.Random(fault).sample(READS, share_of(len(READS))):
        verdict = run_cell(Cell(read, fault))
        assert (verdict.wrongful, verdict.lost_pods) == ((), ()), read


# ---- without each guard


async def contradict_nothing(*_args: Any) -> str:
    return ""


@pytest.mark.slow
@pytest.mark.parametrize(
    ("place", "name", "instead", "cell"),
    [
        (ListVerifier, "find_contradiction", contradict_nothing, NO_REQUESTS),
        (ListVerifier, "find_contradiction", contradict_nothing, NO_TEMPLATES),
        (lister, "_has_capacity", lambda _: False, BAD_REQUEST),
        (RequestLister, "_list_booking_times", lambda _: {}, CLOCK),
    ],
    ids=["requests are read again", "templates are read again", "a request is as it was", "a clock that was set"],
)
def test_without_a_guard_cells_fail(place: Any, name: str, instead: Any, cell: Cell, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(place, name, instead)
    assert run_cell(cell).wrongful
