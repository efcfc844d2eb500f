"""Machine code and Python give the same answers. The first run after a change compiles, which takes its time."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from plimsoll.solver.consolidation.consolidate import consolidate, remove_in_order
from plimsoll.solver.filling.fill import fill
from plimsoll.solver.kernels import force_choice
from plimsoll.solver.packing.first_fit import estimate
from tests.solver.existing_nodes import cluster_of, demand_of, packing_of, standing_of

if TYPE_CHECKING:
    from collections.abc import Callable

pytest.importorskip("numba")


def reported(answer: Any) -> list[Any]:
    values = [getattr(answer, field.name) for field in fields(answer)]
    return [value.tolist() if isinstance(value, np.ndarray) else value for value in values]


QUESTIONS: dict[str, Callable[[int], Any]] = {
    "filling": lambda seed: fill(demand_of(seed), standing_of(seed)),
    "estimate": lambda seed: estimate(packing_of(seed), 0, nodes=9),
    "consolidation": lambda seed: consolidate(cluster_of(seed)),
    "removals": lambda seed: remove_in_order(cluster_of(seed), np.arange(12)),
}


@pytest.mark.parametrize("question", sorted(QUESTIONS))
def test_compiled_kernels_answer_as_plain_ones_do(question: str):
    ask = QUESTIONS[question]
    with force_choice("plain"):
        plain = [reported(ask(seed)) for seed in range(40)]
    with force_choice("numba"):
        compiled = [reported(ask(seed)) for seed in range(40)]
    assert plain == compiled
