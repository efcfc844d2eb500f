"""Nodes that are the same to every class of a table, as one row with a multiplicity.

Ten thousand identical empty nodes are one row for whoever places in bulk. Rows merge when all classes get the same
answer on them, when as much is free, and when placing a pod on one would change the same counts: domains with several
nodes are told apart, a domain that is a node of its own (hostnames) is known by what it counts.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.nodes.planning.arrays import Arrays
    from plimsoll.nodes.planning.predicates import Predicates
    from plimsoll.nodes.planning.trials import Trial
    from plimsoll.solver.problems import Ints


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class MergedRows:
    """`rows[M]` stands for `counts[M]` rows each; `merged_of[N]` says which one stands for a row."""

    rows: Ints
    counts: Ints
    merged_of: Ints

    def members(self, merged: int) -> Ints:
        """The rows behind a merged one, in order."""
        return np.flatnonzero(self.merged_of == merged)


def merged_rows(trial: Trial, classes: Iterable[int] | None = None) -> MergedRows:
    """For these classes (default: all of the table) as things stand in the trial."""
    predicates = trial.predicates
    numbers = range(len(predicates.table)) if classes is None else tuple(classes)
    columns: list[Ints] = [trial.free]
    columns += [trial.codes(number)[:, None] for number in numbers]
    columns += [one[:, None] for number in numbers for one in _counted(number, predicates, trial)]
    columns += [_told_apart(key, predicates.arrays)[:, None] for key in _topology_keys(predicates, numbers)]
    table = np.ascontiguousarray(np.concatenate(columns, axis=1))
    found: dict[bytes, int] = {}
    rows: list[int] = []
    merged_of = np.empty(len(table), dtype=np.int64)
    for row in range(len(table)):
        number = merged_of[row] = found.setdefault(table[row].tobytes(), len(rows))
        if number == len(rows):
            rows.append(row)
    counts = np.bincount(merged_of, minlength=len(rows)).astype(np.int64)
    return MergedRows(rows=np.array(rows, dtype=np.int64), counts=counts, merged_of=merged_of)


def _counted(number: int, predicates: Predicates, trial: Trial) -> Iterable[Ints]:
    """What a code does not show: a rule behind the first that refuses, and what happens after the next pod."""
    pods = predicates.table.classes[number]
    if pods.problem is not None:
        return
    placed = trial.present
    yield from (flags.astype(np.int64) for flags in predicates.in_the_way(number, placed))
    for one in predicates.spreads(number):
        yield one.eligible.astype(np.int64)
        yield np.append(predicates.spread_now(one, placed), 0)[one.domains]
    if pods.has_volumes:
        wanted = predicates.rules.wanted(number)
        attached = predicates.rules.attachments
        for driver in sorted({*wanted.own, *(driver for driver, _ in wanted.shared)} & attached.limits.keys()):
            yield attached.limits[driver]
            yield attached.used.get(driver, np.zeros(len(trial.free), dtype=np.int64))
        for handle in wanted.shared:
            yield attached.holders.get(handle, np.zeros(len(trial.free), dtype=np.int64))


def _topology_keys(predicates: Predicates, numbers: Iterable[int]) -> list[str]:
    keys: set[str] = set()
    for number in numbers:
        terms = predicates.terms(number)
        keys.update(term.topology_key for term in (*terms.wanted, *terms.unwanted))
        keys.update(one.key for one in predicates.spreads(number))
    return sorted(keys)


def _told_apart(key: str, arrays: Arrays) -> Ints:
    """[N]: the domain of each row; one number for all domains of a single row."""
    domains = arrays.label_ids(key)
    sizes = np.bincount(domains[domains >= 0], minlength=len(arrays.label_values(key)) + 1)
    return np.where((domains >= 0) & (sizes[domains] == 1), -2, domains)
