"""Items of an agent's list and objects that it reads, with extreme values in every field."""

from __future__ import annotations

import pytest

from tests.effort import IS_LONG
from tests.field_fuzz.seeds import fuzz_agent

SHORT = 200
LONG = 2_000
SEEDS = 20


def check(seed: int, count: int) -> None:
    result = fuzz_agent(seed, count)
    assert not result.findings, f"seed {seed}: {result.findings[0].problem}"
    assert result.answers[200] > count * 0.3, "nearly every patch was refused, so little was tried"


def test_items_and_objects_with_extreme_fields_remove_no_instance():
    check(0, SHORT)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(1, SEEDS + 1 if IS_LONG else 3))
def test_many_items_and_objects_with_extreme_fields_remove_no_instance(seed: int):
    check(seed, LONG)
