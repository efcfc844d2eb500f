"""The service of scenarios. `tests/e2e/fleet` runs the same scenarios on PostgreSQL."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet.ocm_service import open_ocm_fleet
from tests.fleet.service import open_scenario

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from tests.fleet.ocm_service import OcmFleet
    from tests.fleet.service import FleetScenario


@pytest.fixture
def fleet(tmp_path: Path) -> Iterator[FleetScenario]:
    with open_scenario(tmp_path) as scenario:
        yield scenario


@pytest.fixture
def ocm_fleet(tmp_path: Path) -> Iterator[OcmFleet]:
    with open_ocm_fleet(tmp_path) as fleet:
        yield fleet
