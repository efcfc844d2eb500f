"""All rules about a class and one node, over the rows of some arrays: everything but spread and inter-pod terms.

Rows are the nodes of a cluster, or one empty node per scale-up option. Codes are those of `static_predicates`: 0 fits,
otherwise the number of the first refusal in kube-scheduler's order. Pods that a simulation has placed are given per
class and row, and count as running.

`AttachLimits` keeps how much of each CSI driver's attach limit is used per row; `AttachDemand` is what one pod of a
class adds. The rule is `plimsoll.scheduling.rules.volume_limits`.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plimsoll.core.resources import PODS
from plimsoll.nodes.planning.equivalence.volume_keys import list_pod_claims
from plimsoll.nodes.planning.predicates.static_predicates import RefusalCache, StaticPredicates
from plimsoll.objects.api.meta import ObjectMeta
from plimsoll.objects.api.nodes import Node
from plimsoll.scheduling.cluster_view import ClusterView, NodeState
from plimsoll.scheduling.feasibility import RULES
from plimsoll.scheduling.rules.host_ports import NODE_PORTS
from plimsoll.scheduling.rules.resources_fit import RESOURCES_FIT
from plimsoll.scheduling.rules.volume_limits import VOLUME_LIMITS, find_attachments
from plimsoll.scheduling.rules.volume_restrictions import VOLUME_RESTRICTIONS
from plimsoll.scheduling.verdicts import Refusal, refuse_malformed
from plimsoll.solver.problem import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable, PodClass
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays
    from plimsoll.scheduling.feasibility import Profile
    from plimsoll.scheduling.storage import Storage
    from plimsoll.scheduling.verdicts import Rule
    from plimsoll.solver.problem import Flags, Ints


OVER_LIMIT: Final = Refusal(plugin=VOLUME_LIMITS, messages=("node(s) exceed max volume count",))

MANY_VOLUMES: Final = 1 << 20
"""The limit if none is known: more than the pods of one node can use."""

Handle = tuple[str, str]
"""Driver and volume identity."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AttachDemand:
    """The volumes that a pod of a class attaches: its own volumes, and volumes shared between pods."""

    own: Mapping[str, int]
    shared: tuple[Handle, ...]

    @classmethod
    def from_pods(cls, pods: PodClass, storage: Storage) -> AttachDemand:
        own: Counter[str] = Counter()
        shared: list[Handle] = []
        claims = list_pod_claims(pods.pod)
        named = {part[_IDENTITY[part[0]]] for part in pods.volumes if part[0] in _IDENTITY}
        for namespace, name in claims:
            handles = find_attachments(namespace, (name,), storage)
            if (namespace, name) in named:
                shared += sorted(handles)
            else:
                own.update(driver for driver, _ in handles)
        return cls(own=dict(own), shared=tuple(dict.fromkeys(shared)))

    def compute_amount(self, driver: str, pods: int) -> int:
        """The attachments per pod, for this number of pods; volumes that several of them share are not counted."""
        shared = sum(handle[0] == driver for handle in self.shared) if pods <= 1 else 0
        return self.own.get(driver, 0) + shared


# The position of the name in the key of a claim that is not exchangeable (`volume_keys`).
_IDENTITY: Final = {"bound": 3, "waiting": 2}


class AttachLimits:
    """Attach limits and their use per driver and row."""

    def __init__(self, arrays: NodeArrays, storage: Storage) -> None:
        self._storage = storage
        self._count = len(arrays)
        self.limits: dict[str, Ints] = {}
        self.used: dict[str, Ints] = {}
        self.holders: dict[Handle, Ints] = {}
        limited = self._read_limits(arrays) if storage.csi_nodes else []
        for row in limited:
            present: set[Handle] = set()
            for namespace, names in arrays.running_pods.nodes[row].claims:
                present |= find_attachments(namespace, names, storage)
            for handle in sorted(present):
                self._get_column(self.used, handle[0])[row] += 1
                self._find_rows_holding(handle)[row] += 1

    def _read_limits(self, arrays: NodeArrays) -> list[int]:
        rows: list[int] = []
        for row, state in enumerate(arrays.states):
            csi_node = self._storage.find_csi_node(state.node)
            for driver in () if csi_node is None else csi_node.spec.drivers:
                if driver.allocatable is not None and driver.allocatable.count is not None:
                    limits = self.limits.setdefault(driver.name, np.full(self._count, -1, dtype=np.int64))
                    limits[row] = driver.allocatable.count
                    rows.append(row)
        return sorted(set(rows))

    def _get_column(self, columns: dict[str, Ints], driver: str) -> Ints:
        return columns.setdefault(driver, np.zeros(self._count, dtype=np.int64))

    def _find_rows_holding(self, handle: Handle) -> Ints:
        return self.holders.setdefault(handle, np.zeros(self._count, dtype=np.int64))

    def count_left(self, driver: str) -> Ints:
        """[N]: the number of further volumes of a driver that each row can attach."""
        limits = self.limits.get(driver, np.full(self._count, -1, dtype=np.int64))
        used = self.used.get(driver, np.zeros(self._count, dtype=np.int64))
        return np.where(limits >= 0, np.maximum(limits - used, 0), MANY_VOLUMES)

    def find_rows_over_limit(
        self, wanted: AttachDemand, placed: Sequence[tuple[AttachDemand, Ints]] = ()
    ) -> Flags | None:
        """[N]: rows where one more pod exceeds a limit; `placed` are the pods of a simulation on each row ([N])."""
        found: Flags | None = None
        for driver in sorted({*wanted.own, *(driver for driver, _ in wanted.shared)} & self.limits.keys()):
            used, more = self._use(driver, wanted, placed)
            limits = self.limits[driver]
            over = (limits >= 0) & (more > 0) & (used + more > limits)
            found = over if found is None else found | over
        return found

    def count_room(self, wanted: AttachDemand, placed: Sequence[tuple[AttachDemand, Ints]] = ()) -> Ints | None:
        """[N]: the number of pods of the class that the limits allow; None if nothing is limited."""
        found: Ints | None = None
        for driver in sorted(wanted.own.keys() & self.limits.keys()):
            used, more = self._use(driver, wanted, placed)
            limits = self.limits[driver]
            first = more - wanted.own[driver]  # Shared volumes are attached with the first pod.
            left = np.where(limits >= 0, np.maximum(limits - used - first, 0) // wanted.own[driver], UNBOUNDED)
            found = left if found is None else np.minimum(found, left)
        return found

    def _use(self, driver: str, wanted: AttachDemand, placed: Sequence[tuple[AttachDemand, Ints]]) -> tuple[Ints, Ints]:
        """The attached volumes of a driver, and those that one more pod would attach."""
        used = self.used.get(driver, np.zeros(self._count, dtype=np.int64)).copy()
        more = np.full(self._count, wanted.own.get(driver, 0), dtype=np.int64)
        handles = [handle for handle in wanted.shared if handle[0] == driver]
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


_BITS: Final = 62
_ANYWHERE: Final = Node(metadata=ObjectMeta(name="anywhere"))


class NodePredicates:
    """Codes of the classes of a table on rows, and how many pods of a class a row has room for."""

    def __init__(
        self,
        table: ClassTable,
        arrays: NodeArrays,
        view: ClusterView,
        *,
        refusal_cache: RefusalCache,
        profile: Profile,
    ) -> None:
        self.table = table
        self.arrays = arrays
        self.refusals = refusal_cache.refusals
        self.requests: Ints = arrays.columns.to_matrix([pod_class.demand for pod_class in table])
        self.static = StaticPredicates(arrays, view, refusal_cache=refusal_cache, disabled=profile.disabled)
        self._view = view
        self._profile = profile
        self._unreadable = np.flatnonzero(arrays.unreadable)
        self._attachments: AttachLimits | None = None
        self._wanted: dict[int, AttachDemand] = {}
        self._before: dict[tuple[Any, ...], tuple[Ints, Flags]] = {}
        self._conflicts: dict[int, Ints | None] = {}
        self._clashes: dict[tuple[str, int, int], tuple[int, int]] = {}

    def find_codes(self, number: int, free: Ints, placed: Mapping[int, Ints]) -> Ints:
        """[N]: the first refusal on each row."""
        pods = self.table.classes[number]
        if pods.problem is not None:
            return np.full(len(self.arrays), self.refusals.intern(pods.problem), dtype=np.int64)
        codes = self._check_before_resources(number)[0]
        codes = self._add_conflict_codes(NODE_PORTS, number, codes, placed) if pods.scheduling_key.ports else codes
        codes = merge_codes(codes, self._check_resources(number, free))
        if pods.volumes:
            codes = self._add_volume_codes(number, codes, placed)
        return codes

    def find_fitting(self, number: int, free: Ints, placed: Mapping[int, Ints]) -> Flags:
        """[N]: rows without a refusal. This is faster than `find_codes`."""
        if not self._requests_amounts_only(number):
            found: Flags = self.find_codes(number, free, placed) == 0
            return found
        open_ = self._check_before_resources(number)[1]
        return open_.copy() if self._is_off(RESOURCES_FIT) else _has_room(free, self.requests[number], open_)

    def find_fitting_of_all(self, numbers: Sequence[int], free: Ints, placed: Mapping[int, Ints]) -> Flags:
        """[len(numbers), N]: the same for many classes, with one comparison of resources."""
        amounts_only = [place for place, number in enumerate(numbers) if self._requests_amounts_only(number)]
        found = np.zeros((len(numbers), len(self.arrays)), dtype=np.bool_)
        chosen = [numbers[place] for place in amounts_only]
        if chosen:
            found[amounts_only] = self._find_open_rows(chosen)
        if chosen and not self._is_off(RESOURCES_FIT):
            # Free resources may be negative; resources that a class does not request are not compared.
            requested = np.where(self.requests[chosen] > 0, self.requests[chosen], np.iinfo(np.int64).min)
            for column in np.flatnonzero((self.requests[chosen] > 0).any(axis=0)).tolist():
                found[amounts_only] &= free[:, column] >= requested[:, column, None]
        for place in set(range(len(numbers))).difference(amounts_only):
            found[place] = self.find_fitting(numbers[place], free, placed)
        return found

    def _requests_amounts_only(self, number: int) -> bool:
        pods = self.table.classes[number]
        return pods.problem is None and not (pods.scheduling_key.ports or pods.volumes or len(self._unreadable))

    def _find_open_rows(self, numbers: Sequence[int]) -> Flags:
        """[len(numbers), N]: rows that accept the classes apart from resources."""
        return np.stack([self._check_before_resources(number)[1] for number in numbers])

    def count_room(self, number: int, free: Ints, placed: Mapping[int, Ints]) -> Ints:
        """[N]: the number of further pods of the class per row by these rules, for rows that take one."""
        request = self.requests[number]
        requested = np.flatnonzero(request > 0)
        if self._is_off(RESOURCES_FIT) or not len(requested):
            room = np.full(len(self.arrays), UNBOUNDED, dtype=np.int64)
        else:
            room = np.maximum((free[:, requested] // request[requested]).min(axis=1), 0)
        pods = self.table.classes[number]
        if self.excludes_itself(number):
            room = np.minimum(room, 1)
        if pods.volumes and not self._is_off(VOLUME_LIMITS):
            left = self.attach_limits.count_room(self.attach_demand(number), self._list_attached(placed))
            room = room if left is None else np.minimum(room, left)
        return room

    def excludes_itself(self, number: int) -> bool:
        """Whether two pods of the class cannot be on one node, because of a port, a disk or a claim."""
        pods = self.table.classes[number]
        if (
            pods.scheduling_key.ports
            and not self._is_off(NODE_PORTS)
            and any(self._get_conflict_codes(NODE_PORTS, number, number))
        ):
            return True
        return bool(pods.volumes) and any(self._get_conflict_codes(VOLUME_RESTRICTIONS, number, number))

    @property
    def attach_limits(self) -> AttachLimits:
        if self._attachments is None:
            self._attachments = AttachLimits(self.arrays, self._view.storage)
        return self._attachments

    def attach_demand(self, number: int) -> AttachDemand:
        found = self._wanted.get(number)
        if found is None:
            found = self._wanted[number] = AttachDemand.from_pods(self.table.classes[number], self._view.storage)
        return found

    def _is_off(self, plugin: str) -> bool:
        return plugin in self._profile.disabled

    def _check_before_resources(self, number: int) -> tuple[Ints, Flags]:
        """Cordon, nodeName, taints, node affinity and ports of running pods, which a simulation does not change.

        Returns the codes, and the rows without one. Classes with equal requirements share the result.
        """
        pods = self.table.classes[number]
        requirements = (
            pods.scheduling_key.tolerations,
            pods.scheduling_key.node_constraints,
            pods.scheduling_key.node_name,
            pods.scheduling_key.ports,
        )
        found = self._before.get(requirements)
        if found is None:
            codes = np.zeros(len(self.arrays), dtype=np.int64)
            for rule in (
                self.static.check_unschedulable,
                self.static.check_node_name,
                self.static.check_taints,
                self.static.check_node_affinity,
                self._check_ports,
            ):
                codes = merge_codes(codes, rule(pods))
            found = self._before[requirements] = (codes, np.equal(codes, 0))
        return found

    def _check_ports(self, pods: PodClass) -> Ints | None:
        if not pods.scheduling_key.ports or self._is_off(NODE_PORTS):
            return None
        rule = RULES[NODE_PORTS](pods.pod, self._view)
        taken = [row for row, contents in enumerate(self.arrays.running_pods.nodes) if contents.ports]
        return self._check_rows(rule, taken)

    def _check_rows(self, rule: Rule | Refusal | None, rows: Sequence[int]) -> Ints | None:
        if rule is None or isinstance(rule, Refusal) or not rows:
            return None
        codes = np.zeros(len(self.arrays), dtype=np.int64)
        for row in rows:
            codes[row] = self.refusals.intern(rule.refuse(self.arrays.states[row]))
        return codes

    def _check_resources(self, number: int, free: Ints) -> Ints | None:
        if self._is_off(RESOURCES_FIT):
            return None
        request = self.requests[number]
        requested = np.flatnonzero(request > 0)
        short: Flags = free[:, requested] < request[requested]
        codes = np.zeros(len(self.arrays), dtype=np.int64)
        lacking = np.flatnonzero(short.any(axis=1))
        if len(lacking):
            rows, kind_of = _find_distinct_rows(short[lacking])
            names = [self.arrays.columns.names[column] for column in requested.tolist()]
            known = [
                self.refusals.intern(_build_insufficient_refusal(names, short[lacking[row]])) for row in rows.tolist()
            ]
            codes[lacking] = np.array(known, dtype=np.int64)[kind_of]
        for row in self._unreadable.tolist():
            codes[row] = self.refusals.intern(refuse_malformed(RESOURCES_FIT, self.arrays.states[row].problem))
        return codes

    def _add_volume_codes(self, number: int, codes: Ints, placed: Mapping[int, Ints]) -> Ints:
        pods = self.table.classes[number]
        if not self._is_off(VOLUME_RESTRICTIONS):
            if number not in self._conflicts:
                rule = RULES[VOLUME_RESTRICTIONS](pods.pod, self._view)
                self._conflicts[number] = self._check_rows(rule, range(len(self.arrays)))
            codes = merge_codes(codes, self._conflicts[number])
            codes = self._add_conflict_codes(VOLUME_RESTRICTIONS, number, codes, placed)
        if not self._is_off(VOLUME_LIMITS):
            over = self.attach_limits.find_rows_over_limit(self.attach_demand(number), self._list_attached(placed))
            codes = codes if over is None else merge_codes(codes, over * self.refusals.intern(OVER_LIMIT))
        codes = merge_codes(codes, self.static.check_volume_binding(pods))
        return merge_codes(codes, self.static.check_volume_zone(pods))

    def _list_attached(self, placed: Mapping[int, Ints]) -> list[tuple[AttachDemand, Ints]]:
        return [
            (self.attach_demand(other), rows) for other, rows in placed.items() if self.table.classes[other].volumes
        ]

    def _add_conflict_codes(self, plugin: str, number: int, codes: Ints, placed: Mapping[int, Ints]) -> Ints:
        """Add the conflicts with pods of the simulation: a port, a disk, a claim."""
        if self._is_off(plugin):
            return codes
        for other, rows in placed.items():
            together, elsewhere = self._get_conflict_codes(plugin, number, other)
            if together or elsewhere:
                codes = merge_codes(codes, np.where(rows > 0, together, elsewhere if rows.any() else 0))
        return codes

    def _get_conflict_codes(self, plugin: str, number: int, other: int) -> tuple[int, int]:
        """Codes for a pod of a class where a pod of another class is on the node, and where it is on another node."""
        key = (plugin, number, other)
        found = self._clashes.get(key)
        if found is None:
            found = self._clashes[key] = self._check_conflict(
                plugin, self.table.classes[number], self.table.classes[other]
            )
        return found

    def _check_conflict(self, plugin: str, pods: PodClass, other: PodClass) -> tuple[int, int]:
        if plugin == NODE_PORTS and not other.scheduling_key.ports:
            return (0, 0)
        if plugin == VOLUME_RESTRICTIONS and not other.volumes:
            return (0, 0)
        alone = ClusterView.from_objects([_ANYWHERE], storage=self._view.storage)
        together = alone.with_pod(other.pod, _ANYWHERE.metadata.name).nodes[_ANYWHERE.metadata.name]
        # Pods of one class have claims of their own unless they are known to share one: the representative's claim is
        # then not in the way of the others.
        exchangeable = pods is other and not pods.one_pod_only
        around = alone if exchangeable else alone.with_pod(other.pod, _ANYWHERE.metadata.name)
        rule = RULES[plugin](pods.pod, around)
        if rule is None or isinstance(rule, Refusal):
            return (0, 0)
        empty = NodeState(_ANYWHERE)
        return (self.refusals.intern(rule.refuse(together)), self.refusals.intern(rule.refuse(empty)))


def merge_codes(codes: Ints, more: Ints | None) -> Ints:
    """Keep the first refusal; rows without one get the code of the next rule."""
    return codes if more is None else np.where(codes == 0, more, codes)


def _has_room(free: Ints, request: Ints, among: Flags) -> Flags:
    """The rows with room for one pod. It compares column by column: columns are few and rows are many."""
    room = among.copy()
    for column in np.flatnonzero(request > 0).tolist():
        room &= free[:, column] >= request[column]
    return room


def _find_distinct_rows(flags: Flags) -> tuple[Ints, Ints]:
    """One row per distinct kind, and the kind of each row. Few columns become numbers, which sort quickly."""
    if flags.shape[1] > _BITS:
        _, rows, kind_of = np.unique(flags, axis=0, return_index=True, return_inverse=True)
    else:
        numbers = flags @ (1 << np.arange(flags.shape[1], dtype=np.int64)[::-1])
        _, rows, kind_of = np.unique(numbers, return_index=True, return_inverse=True)
    return rows, kind_of.reshape(-1)


def _build_insufficient_refusal(names: Sequence[str], short: Flags) -> Refusal:
    """The refusal in the words of the rule: pods first, then other resources in canonical order."""
    lacking = [name for name, lacks in zip(names, short.tolist(), strict=True) if lacks]
    lacking.sort(key=lambda name: name != PODS)
    words = tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in lacking)
    return Refusal(plugin=RESOURCES_FIT, messages=words)
