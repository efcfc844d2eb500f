"""An agent is silent only for as long as it could have been heard (docs/design/fleet.md 15.1)."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.workers import Worker
from tests.fleet.workers.cluster_lives import ROW_A, Lives, OcmWorld
from tests.nodes.autoscaler.faulty_clusters import AdjustableClock

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.fleet.workers.worlds import Instance

AN_HOUR_S = 3600.0
LONGER_THAN_SILENCE_S = 700.0


class Listening(Lives):
    """A has room, and its agent reports only when a test says so."""

    def __init__(self) -> None:
        super().__init__(OcmWorld)
        self.add_ready(ROW_A, used=2)

    def get_fleet_clock(self) -> AdjustableClock:
        self.adjustable = AdjustableClock(self.run.clock)
        return self.adjustable

    def start(self) -> Instance:
        return self.fleet.start(Worker.DYNAMIC_SCALE_UP, clusters=self.build_parts())

    def count_after_pass(self, process: Instance) -> int:
        """The rows of clusters."""
        self.run.run_until(process.run_pass())
        return len(self.list_rows())


@pytest.fixture
def lives() -> Iterator[Listening]:
    with Listening() as lives:
        yield lives


def test_after_an_hour_without_a_fleet_manager_no_cluster_is_made_in_place_of_those_that_are_there(lives: Listening):
    lives.run.advance_by(AN_HOUR_S)
    assert lives.count_after_pass(lives.start()) == 1


@pytest.mark.parametrize("jump", [timedelta(days=1), timedelta(days=-1)], ids=["ahead", "behind"])
def test_a_clock_that_is_set_makes_no_agent_silent(lives: Listening, jump: timedelta):
    process = lives.start()
    assert lives.count_after_pass(process) == 1
    lives.adjustable.ahead += jump
    assert lives.count_after_pass(process) == 1


@pytest.mark.parametrize("days", [0, 1, -1], ids=["steady", "ahead", "behind"])
def test_an_agent_that_stays_silent_while_it_is_listened_for_is_silent(lives: Listening, days: int):
    process = lives.start()
    lives.adjustable.ahead += timedelta(days=days)
    lives.count_after_pass(process)
    lives.run.advance_by(LONGER_THAN_SILENCE_S)
    found = lives.count_after_pass(process)
    # To a clock that was set back the last report is of the future, until the agent reports again.
    assert found == (1 if days < 0 else 2)
