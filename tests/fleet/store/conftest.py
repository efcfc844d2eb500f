"""The databases that need no server."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.fleet.store.databases import DatabaseUnderTest

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["memory", "file"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> DatabaseUnderTest:
    return DatabaseUnderTest("sqlite://" if request.param == "memory" else f"sqlite:///{tmp_path}/fleet.sqlite3")


@pytest.fixture
def lasting(tmp_path: Path) -> DatabaseUnderTest:
    """A database that can be opened again."""
    return DatabaseUnderTest(f"sqlite:///{tmp_path}/lasting.sqlite3")
