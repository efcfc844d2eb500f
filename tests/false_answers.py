"""Every cell of the grids of false answers, in one table: `make test-false-answers`.

    python -m tests.false_answers [--jobs 2] [GRID…]

A cell is a controller, a scenario, a read of it and a lie, in virtual time. The table says, per lie and per read, how
many cells were run, in how many answers were falsified, and how many had a wrongful deletion, eviction or scale-in.
The exit code is 1 if there was one.
"""

from __future__ import annotations

import argparse
import logging
import sys
from collections import defaultdict
from concurrent.futures import ProcessPoolExecutor
from typing import TYPE_CHECKING, Any, NamedTuple

import structlog

from tests.faults.fleet import lying_providers, misled_agent
from tests.faults.kafka import lying_kafka
from tests.faults.nodes import grid, request_grid
from tests.tidb import lying_world

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence


class Outcome(NamedTuple):
    """A cell that was run. `wrongs`: what was removed wrongly."""

    grid: str
    read: str
    lie: str
    cell: str
    struck: int
    wrongs: tuple[str, ...]


class Grid(NamedTuple):
    """The cells of a controller, and what runs one of them."""

    cells: Callable[[], Iterable[Any]]
    run: Callable[[Any], tuple[int, tuple[str, ...]]]


def run_node_cell(cell: grid.Cell) -> tuple[int, tuple[str, ...]]:
    verdict = grid.run_cell(cell)
    return verdict.struck, (*verdict.wrongful, *verdict.lost_pods)


def run_request_cell(cell: grid.Cell) -> tuple[int, tuple[str, ...]]:
    verdict = request_grid.run_cell(cell)
    return verdict.struck, (*verdict.wrongful, *verdict.lost_pods)


def run_tidb_cell(cell: lying_world.Cell) -> tuple[int, tuple[str, ...]]:
    wrongs, lied = lying_world.live(cell)
    return lied, tuple(wrongs)


def run_kafka_cell(cell: lying_kafka.Cell) -> tuple[int, tuple[str, ...]]:
    verdict = lying_kafka.run_cell(cell)
    return verdict.struck, verdict.wrongs


def run_cluster_cell(cell: lying_providers.Cell) -> tuple[int, tuple[str, ...]]:
    verdict = lying_providers.run_cell(cell)
    return verdict.struck, verdict.wrongs


def run_agent_cell(cell: misled_agent.Cell) -> tuple[int, tuple[str, ...]]:
    verdict = misled_agent.run_cell(cell)
    return verdict.struck, verdict.wrongs


GRIDS = {
    "nodes": Grid(grid.list_cells, run_node_cell),
    "requests": Grid(request_grid.list_cells, run_request_cell),
    "tidb": Grid(lying_world.all_cells, run_tidb_cell),
    "kafka": Grid(lying_kafka.list_cells, run_kafka_cell),
    "clusters": Grid(lying_providers.list_cells, run_cluster_cell),
    "agent": Grid(misled_agent.list_cells, run_agent_cell),
}


def run_cell(name: str, number: int) -> Outcome:
    """Run the cell of this number of a grid."""
    # Falsified answers cause thousands of warnings, which take longer to write than the runs themselves.
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    cell = list(GRIDS[name].cells())[number]
    struck, wrongs = GRIDS[name].run(cell)
    lie = cell.fault if isinstance(cell, grid.Cell) else cell.lie
    return Outcome(name, str(cell.read), str(lie), str(cell), struck, wrongs)


def format_table(outcomes: Sequence[Outcome], key: Callable[[Outcome], tuple[str, str]], title: str) -> list[str]:
    """A row per value of the key, and a sum."""
    rows: dict[tuple[str, str], list[Outcome]] = defaultdict(list)
    for outcome in outcomes:
        rows[key(outcome)].append(outcome)
    lines = [f"{'controller':<11}{title:<34}{'cells':>7}{'falsified':>11}{'wrongful':>10}"]
    for (name, what), found in [*rows.items(), (("all", ""), [*outcomes])]:
        falsified, wrongful = sum(cell.struck > 0 for cell in found), sum(bool(cell.wrongs) for cell in found)
        lines.append(f"{name:<11}{what:<34}{len(found):>7}{falsified:>11}{wrongful:>10}")
    return lines


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.false_answers")
    parser.add_argument("grids", nargs="*", choices=[[], *GRIDS], help="which controllers; all by default")
    parser.add_argument("--jobs", type=int, default=2, help="how many cells at a time")
    options = parser.parse_args(arguments)
    names = options.grids or [*GRIDS]
    wanted = [(name, number) for name in names for number, _ in enumerate(GRIDS[name].cells())]
    with ProcessPoolExecutor(options.jobs) as pool:
        outcomes = list(pool.map(run_cell, *zip(*wanted, strict=True), chunksize=8))
    wrongful = [outcome for outcome in outcomes if outcome.wrongs]
    by_lie = format_table(outcomes, lambda outcome: (outcome.grid, outcome.lie), "lie")
    by_read = format_table(outcomes, lambda outcome: (outcome.grid, outcome.read), "read")
    details = [f"wrongful: {outcome.grid}: {outcome.cell}: {'; '.join(outcome.wrongs)}" for outcome in wrongful]
    sys.stdout.write("\n".join([*by_lie, "", *by_read, *details, ""]))
    return 1 if wrongful else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
