"""The specification's 22 worked examples (docs/design/tidb.md 4.9), by number."""

from __future__ import annotations

from typing import Any

import pytest

from tests.tidb.planning.planner.builders import (
    BIG,
    GB,
    SMALL,
    base,
    codes,
    counts,
    disks,
    group_of,
    strategy,
    thresholds,
)

TEN_SMALL = {**SMALL, "count": 10}
HOT_16 = base(0.95, 0.95, 0.3, 0.3, 0.3, quota=16)
PARTLY_HOT = base(0.95, 0.3, 0.3)
GIB = 2**30
FIVE_OF_TEN_GIB = [{**instance, "capacity_bytes": 10 * GIB, "used_bytes": 5 * GIB} for instance in base(0.3, 0.3, 0.3)]
DATA_IN_GROUP = [
    {**instance, "capacity_bytes": 10 * GB, "used_bytes": 5 * GB} for instance in group_of("small", 0.3, 0.3)
]

FULL = thresholds()

EXAMPLES: dict[int, tuple[dict[str, Any], list[dict[str, Any]], dict[str, int]]] = {
    1: (strategy(), base(0.9, 0.9, 0.9), {"own": 6}),
    2: (strategy(component="tidb"), base(0.85, 0.85), {"own": 4}),
    3: (strategy(component="tidb", cpu=thresholds(low=0.1)), base(*[0.9] * 5), {"own": 10}),
    4: (strategy(limit=4), base(0.9, 0.9, 0.9), {"own": 4}),
    5: (strategy(SMALL, nodes=6), [*base(0.9, 0.9, 0.9), *group_of("small", 0.9, 0.9)], {"own": 6}),
    6: (strategy(SMALL, nodes=5), [*base(0.9, 0.9, 0.9), *group_of("small", 0.9, 0.9)], {"own": 5}),
    7: (strategy(BIG, SMALL), PARTLY_HOT, {"big": 1}),
    8: (strategy(SMALL), PARTLY_HOT, {"small": 2}),
    9: (strategy(SMALL), base(0.9, 0.9, 0.2, 0.2), {"small": 4}),
    10: (strategy(BIG, TEN_SMALL, nodes=20), HOT_16, {"big": 1, "small": 10}),
    11: (strategy(BIG, TEN_SMALL, nodes=8), HOT_16, {"big": 1, "small": 2}),
    12: (strategy(SMALL), [*PARTLY_HOT, *group_of("small", 0.85)], {"small": 4}),
    13: (strategy({**SMALL, "count": 2}), [*PARTLY_HOT, *group_of("small", 0.85, 0.85)], {"small": 2}),
    14: (
        strategy(BIG, SMALL),
        [*base(0.1, 0.15, 0.05), *group_of("big", 0.1, quota=8), *group_of("small", 0.02, 0.02)],
        {"big": 1, "small": 1},
    ),
    15: (strategy(BIG), [*base(0.1, 0.25, 0.05), *group_of("big", 0.1, quota=8)], {"big": 1}),
    16: (strategy(SMALL, nodes=3), PARTLY_HOT, {}),
    17: (strategy(storage=thresholds(0.45, 0.40), own_storage=10 * GIB), FIVE_OF_TEN_GIB, {"own": 4}),
    18: (strategy(storage=FULL), disks(270), {"own": 6}),
    19: (strategy(storage=thresholds(0.75, 0.45)), disks(240), {"own": 5}),
    20: (strategy(storage=FULL, limit=4), disks(270), {"own": 4}),
    21: (strategy(SMALL, storage=FULL, nodes=5), [*disks(240), *DATA_IN_GROUP], {"own": 5}),
    22: (strategy(storage=FULL), disks(240), {}),
}


@pytest.mark.parametrize("number", EXAMPLES)
def test_worked_example(number: int):
    asked, instances, expected = EXAMPLES[number]
    assert counts(asked, *instances) == expected


def test_worked_example_16_says_that_no_node_is_free():
    asked, instances, _ = EXAMPLES[16]
    assert codes(asked, *instances) == ["no_free_node"]


def test_binary_fractions_do_not_cost_an_instance():
    """14.4 / ((0.8 + 0.4) / 2) - 16 is 8 and not 7.999999999999996: two of four cores are not enough, three are."""
    asked = strategy(cpu=thresholds(0.8, 0.4), nodes=20)
    assert counts(asked, *base(0.9, 0.9, 0.9, 0.9)) == {"own": 7}
