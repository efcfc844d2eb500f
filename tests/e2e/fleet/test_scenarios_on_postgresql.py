"""The scenarios of the fleet manager once more, in virtual time as always, on PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.fleet.model.policy import Reserve
from tests.fleet.api.api_world import ApiWorld
from tests.fleet.fleet_rows import make_policy, offer
from tests.fleet.scenarios.test_f01_f12_scale_up import *  # noqa: F403 - the same tests with another fixture
from tests.fleet.scenarios.test_f15_f20_agents import *  # noqa: F403 - likewise
from tests.fleet.scenarios.test_f21_start_up import *  # noqa: F403 - likewise
from tests.fleet.scenarios.test_f24_limit import *  # noqa: F403 - likewise
from tests.fleet.service import open_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fleet.service import FleetScenario


@pytest.fixture
def fleet(postgresql_url: str, tmp_path: Path) -> Iterator[FleetScenario]:
    with open_scenario(tmp_path, postgresql_url) as scenario:
        yield scenario


@pytest.fixture  # type: ignore[no-redef]
def world(postgresql_url: str) -> Iterator[ApiWorld]:
    """The API alone, with the reserve of the scenarios of agents."""
    reserves = {"standard": Reserve(instances=7, size_id="x1"), "developer": Reserve(instances=0, size_id="x1")}
    policy = make_policy(offer("standard"), offer("developer"), reserves=reserves)
    world = ApiWorld(policy, url=postgresql_url)
    yield world
    world.close()
