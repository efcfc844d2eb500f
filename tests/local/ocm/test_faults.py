"""Faults of calls: each has its effect or has none, and its answer comes, comes late, or does not come."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

from plimsoll.local.ocm.documents import BASE
from plimsoll.local.ocm.faults import CallFault, FaultKind
from tests.local.ocm.ocm_world import build_cluster, play

if TYPE_CHECKING:
    from tests.local.ocm.ocm_world import OcmWorld

CREATE = "clusters.create"


@pytest.mark.parametrize(
    ("fault", "status", "has_effect"),
    [
        (CallFault(kind=FaultKind.STATUS, call=CREATE, status=503), 503, False),
        (CallFault(kind=FaultKind.LOST, call=CREATE), 0, True),
        (CallFault(kind=FaultKind.SILENT, call=CREATE, delay_s=3600), 0, False),
        (CallFault(kind=FaultKind.LATE_ANSWER, call=CREATE, delay_s=5), 201, True),
        (CallFault(kind=FaultKind.LATE_ANSWER, call=CREATE, delay_s=3600), 0, True),
        (CallFault(kind=FaultKind.BODY, call=CREATE, body=b'{"id": 7}'), 201, True),
        (CallFault(kind=FaultKind.BODY, call=CREATE, body=b"{}", status=502), 502, False),
    ],
    ids=lambda value: value.kind.value if isinstance(value, CallFault) else None,
)
def test_a_fault_strikes_once(fault: CallFault, status: int, has_effect: bool):
    async def story(world: OcmWorld) -> None:
        world.ocm.faults.add(fault)
        assert (await world.call("POST", f"{BASE}/clusters", build_cluster())).status == status
        assert bool(world.ocm.clusters.list_clusters()) is has_effect
        received = world.ocm.list_calls(CREATE)
        assert [call.fault for call in received] == [fault.kind.value]
        again = await world.call("POST", f"{BASE}/clusters", build_cluster())
        assert again.status == (400 if has_effect else 201)

    play(story)


def test_a_late_effect_comes_after_the_client_has_gone():
    async def story(world: OcmWorld) -> None:
        world.ocm.faults.add(CallFault(kind=FaultKind.LATE_EFFECT, call=CREATE, delay_s=100))
        answer = await world.call("POST", f"{BASE}/clusters", build_cluster())
        assert answer.status == 0
        assert world.ocm.clusters.list_clusters() == ()
        await world.clock.sleep(100)
        assert len(world.ocm.clusters.list_clusters()) == 1

    play(story)


def test_a_fault_is_for_a_call_and_comes_after_others():
    async def story(world: OcmWorld) -> None:
        world.ocm.faults.add(CallFault(kind=FaultKind.STATUS, call="clusters.list", status=500, skip=1, times=2))
        await world.create()
        statuses = [(await world.call("GET", f"{BASE}/clusters")).status for _ in range(4)]
        assert statuses == [200, 500, 500, 200]

    play(story)


def test_a_fault_without_a_number_lasts_until_it_is_taken_away():
    async def story(world: OcmWorld) -> None:
        world.ocm.faults.add(CallFault(kind=FaultKind.BODY, body=b"<html>", times=None))
        for _ in range(3):
            with pytest.raises(json.JSONDecodeError):
                await world.call("GET", f"{BASE}/clusters")
        world.ocm.faults.clear()
        assert (await world.call("GET", f"{BASE}/clusters")).status == 200

    play(story)
