from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet.api.api_world import ApiWorld

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def world() -> Iterator[ApiWorld]:
    world = ApiWorld()
    yield world
    world.close()
