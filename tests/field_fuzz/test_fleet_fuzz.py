"""Every field of every body that the fleet manager reads with extreme values, over HTTP, with all workers on."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from tests.effort import IS_LONG
from tests.field_fuzz.fleet_table import KAFKA, list_body_fields, name_operation
from tests.field_fuzz.seeds import fuzz_fleet
from tests.fleet.api.api_world import ApiWorld

if TYPE_CHECKING:
    from pathlib import Path

SHORT = 300
LONG = 2_000
SEEDS = 20


def check(folder: Path, seed: int, count: int) -> None:
    result = fuzz_fleet(folder, seed, count)
    assert not result.findings, f"seed {seed}: {result.findings[0].problem}"
    assert result.answers[400] < count * 0.97, "nearly every request was refused, so little was tried"


def test_the_table_has_every_body_and_every_field():
    world = ApiWorld()
    fields = list_body_fields(world.api.operations)
    with_body = {name_operation(operation) for operation in world.api.operations if operation.body is not None}
    world.close()
    assert {field.operation for field in fields} == with_body
    paths = {field.path for field in fields}
    assert {("capacity", "standard", "maxUnits"), ("conditions", 0, "status"), ("strimzi", 0, "version")} <= paths
    assert {(KAFKA, "bytesStored"), (KAFKA, "routes", 0, "router"), ("plan",), ("max_nodes", "standard")} <= paths
    assert sum(len(field.values) for field in fields) > 2_000


def test_bodies_with_extreme_fields_fail_nothing(tmp_path: Path):
    check(tmp_path, 0, SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, SEEDS + 1 if IS_LONG else 3))
def test_many_bodies_with_extreme_fields_fail_nothing(tmp_path: Path, seed: int):
    check(tmp_path, seed, LONG)
