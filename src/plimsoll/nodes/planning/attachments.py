"""Volumes that take something from a node: attach limits by driver.

`Attachments` keeps, for the rows of some arrays, how much of each driver's limit is used; `Wanted` is what one pod of a
class adds. The rule is `plimsoll.scheduling.volume_limits`; what it counts pod by pod is kept here as numbers that a
trial can add to.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from plimsoll.nodes.planning.volume_forms import pod_claims
from plimsoll.scheduling.verdicts import Refusal
from plimsoll.scheduling.volume_limits import VOLUME_LIMITS, attachments
from plimsoll.solver.problems import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.arrays import Arrays
    from plimsoll.nodes.planning.classes import PodClass
    from plimsoll.scheduling.storage import Storage
    from plimsoll.solver.problems import Flags, Ints

OVER_LIMIT: Final = Refusal(plugin=VOLUME_LIMITS, messages=("node(s) exceed max volume count",))

MANY_VOLUMES: Final = 1 << 20
"""More than pods of one node could ask for: where no limit is known."""

Handle = tuple[str, str]
"""Driver, and what tells one volume from another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What a pod of a class attaches: volumes of its own, one more with every pod, and volumes that pods share."""

    own: Mapping[str, int]
    shared: tuple[Handle, ...]

    @classmethod
    def of(cls, pods: PodClass, storage: Storage) -> Wanted:
        own: Counter[str] = Counter()
        shared: list[Handle] = []
        claims = pod_claims(pods.pod)
        named = {part[_IDENTITY[part[0]]] for part in pods.volumes if part[0] in _IDENTITY}
        for namespace, name in claims:
            handles = attachments(namespace, (name,), storage)
            if (namespace, name) in named:
                shared += sorted(handles)
            else:
                own.update(driver for driver, _ in handles)
        return cls(own=dict(own), shared=tuple(dict.fromkeys(shared)))

    def amount(self, driver: str, pods: int) -> int:
        """What each of so many pods takes of the limit; volumes that several of them share are not counted."""
        shared = sum(one[0] == driver for one in self.shared) if pods <= 1 else 0
        return self.own.get(driver, 0) + shared


# Where the name stands in the form of a claim that is not exchangeable (volume_forms).
_IDENTITY: Final = {"bound": 3, "waiting": 2}


class Attachments:
    """Limits and use by driver, row by row."""

    def __init__(self, arrays: Arrays, storage: Storage) -> None:
        self._storage = storage
        self._count = len(arrays)
        self.limits: dict[str, Ints] = {}
        self.used: dict[str, Ints] = {}
        self.holders: dict[Handle, Ints] = {}
        limited = self._read_limits(arrays) if storage.csi_nodes else []
        for row in limited:
            present: set[Handle] = set()
            for namespace, names in arrays.neighbours.households[row].claims:
                present |= attachments(namespace, names, storage)
            for handle in sorted(present):
                self._column(self.used, handle[0])[row] += 1
                self._held(handle)[row] += 1

    def _read_limits(self, arrays: Arrays) -> list[int]:
        rows: list[int] = []
        for row, state in enumerate(arrays.states):
            csi_node = self._storage.csi_node_of(state.node)
            for driver in () if csi_node is None else csi_node.spec.drivers:
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    limits = self.limits.setdefault(driver.name, np.full(self._count, -1, dtype=np.int64))
                    limits[row] = driver.allocatable.count
                    rows.append(row)
        return sorted(set(rows))

    def _column(self, columns: dict[str, Ints], driver: str) -> Ints:
        return columns.setdefault(driver, np.zeros(self._count, dtype=np.int64))

    def _held(self, handle: Handle) -> Ints:
        return self.holders.setdefault(handle, np.zeros(self._count, dtype=np.int64))

    def left(self, driver: str) -> Ints:
        """[N]: how many more volumes of a driver each row attaches."""
        limits = self.limits.get(driver, np.full(self._count, -1, dtype=np.int64))
        used = self.used.get(driver, np.zeros(self._count, dtype=np.int64))
        return np.where(limits >= 0, np.maximum(limits - used, 0), MANY_VOLUMES)

    def over_limit(self, wanted: Wanted, placed: Sequence[tuple[Wanted, Ints]] = ()) -> Flags | None:
        """[N]: rows where one more pod exceeds a limit; `placed` are pods a trial has put on rows ([N])."""
        found: Flags | None = None
        for driver in sorted({*wanted.own, *(driver for driver, _ in wanted.shared)} & self.limits.keys()):
            used, more = self._use(driver, wanted, placed)
            limits = self.limits[driver]
            over = (limits >= 0) & (more > 0) & (used + more > limits)
            found = over if found is None else found | over
        return found

    def room(self, wanted: Wanted, placed: Sequence[tuple[Wanted, Ints]] = ()) -> Ints | None:
        """[N]: how many pods of the class the limits leave room for; none where nothing is limited."""
        found: Ints | None = None
        for driver in sorted(wanted.own.keys() & self.limits.keys()):
            used, more = self._use(driver, wanted, placed)
            limits = self.limits[driver]
            first = more - wanted.own[driver]  # shared volumes that come with the first pod
            left = np.where(limits >= 0, np.maximum(limits - used - first, 0) // wanted.own[driver], UNBOUNDED)
            found = left if found is None else np.minimum(found, left)
        return found

    def _use(self, driver: str, wanted: Wanted, placed: Sequence[tuple[Wanted, Ints]]) -> tuple[Ints, Ints]:
        """What is attached of a driver, and what one more pod would attach."""
        used = self.used.get(driver, np.zeros(self._count, dtype=np.int64)).copy()
        more = np.full(self._count, wanted.own.get(driver, 0), dtype=np.int64)
        handles = [one for one in wanted.shared if one[0] == driver]
        by_trial: dict[Handle, Ints] = {}
        for other, rows in placed:
            used += other.own.get(driver, 0) * rows
            for handle in other.shared:
                if handle[0] == driver:
                    by_trial[handle] = by_trial.get(handle, 0) + rows
        for handle, rows in by_trial.items():
            used += (rows > 0) & ~self._is_held(handle)
        for handle in handles:
            absent = ~self._is_held(handle)
            if handle in by_trial:
                absent &= by_trial[handle] == 0
            more += absent
        return used, more

    def _is_held(self, handle: Handle) -> Flags:
        held = self.holders.get(handle)
        return np.zeros(self._count, dtype=np.bool_) if held is None else held > 0
