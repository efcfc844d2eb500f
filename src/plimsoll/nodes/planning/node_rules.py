"""All rules about a class and one node, over the rows of some arrays: everything but spread and inter-pod terms.

Rows may be the nodes of a cluster or one empty node of each offer (both `predicates`). Codes are those of
`static_rules`: 0 fits, otherwise the number of the first refusal in kube-scheduler's order. What a trial has placed is
given as pods by class and row, and counts as if it ran there.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plimsoll.core.resources import PODS
from plimsoll.nodes.planning.attachments import OVER_LIMIT, Attachments, Wanted
from plimsoll.nodes.planning.static_rules import StaticRules, Verdicts
from plimsoll.objects.meta import ObjectMeta
from plimsoll.objects.nodes import Node
from plimsoll.scheduling.demands import RESOURCES_FIT
from plimsoll.scheduling.feasibility import RULES
from plimsoll.scheduling.host_ports import NODE_PORTS
from plimsoll.scheduling.verdicts import Refusal, malformed
from plimsoll.scheduling.view import ClusterView, NodeState
from plimsoll.scheduling.volume_conflicts import VOLUME_RESTRICTIONS
from plimsoll.scheduling.volume_limits import VOLUME_LIMITS
from plimsoll.solver.problems import UNBOUNDED

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.nodes.planning.arrays import Arrays
    from plimsoll.nodes.planning.classes import ClassTable, PodClass
    from plimsoll.scheduling.feasibility import Profile
    from plimsoll.scheduling.verdicts import Rule
    from plimsoll.solver.problems import Flags, Ints


_BITS: Final = 62
_ANYWHERE: Final = Node(metadata=ObjectMeta(name="anywhere"))


class NodeRules:
    """Codes of the classes of a table on rows, and how many pods of a class a row has room for."""

    def __init__(
        self,
        table: ClassTable,
        arrays: Arrays,
        view: ClusterView,
        *,
        verdicts: Verdicts,
        profile: Profile,
    ) -> None:
        self.table = table
        self.arrays = arrays
        self.refusals = verdicts.refusals
        self.requests: Ints = arrays.columns.matrix([one.demand for one in table])
        self.static = StaticRules(arrays, view, verdicts=verdicts, disabled=profile.disabled)
        self._view = view
        self._profile = profile
        self._unreadable = np.flatnonzero(arrays.unreadable)
        self._attachments: Attachments | None = None
        self._wanted: dict[int, Wanted] = {}
        self._before: dict[tuple[Any, ...], tuple[Ints, Flags]] = {}
        self._conflicts: dict[int, Ints | None] = {}
        self._clashes: dict[tuple[str, int, int], tuple[int, int]] = {}

    def codes(self, number: int, free: Ints, placed: Mapping[int, Ints]) -> Ints:
        """[N]: the first refusal on each row."""
        pods = self.table.classes[number]
        if pods.problem is not None:
            return np.full(len(self.arrays), self.refusals.code(pods.problem), dtype=np.int64)
        codes = self._before_resources(number)[0]
        codes = self._with_clashes(NODE_PORTS, number, codes, placed) if pods.form.ports else codes
        codes = then(codes, self._resources(number, free))
        if pods.volumes:
            codes = self._with_volumes(number, codes, placed)
        return codes

    def fits(self, number: int, free: Ints, placed: Mapping[int, Ints]) -> Flags:
        """[N]: where there is no refusal. Told faster than which one it would be."""
        if not self._asks_for_amounts_only(number):
            found: Flags = self.codes(number, free, placed) == 0
            return found
        open_ = self._before_resources(number)[1]
        return open_.copy() if self._is_off(RESOURCES_FIT) else _has_room(free, self.requests[number], open_)

    def fits_of(self, numbers: Sequence[int], free: Ints, placed: Mapping[int, Ints]) -> Flags:
        """[len(numbers), N]: the same of many classes, resources of all of them compared at once."""
        alike = [place for place, number in enumerate(numbers) if self._asks_for_amounts_only(number)]
        found = np.zeros((len(numbers), len(self.arrays)), dtype=np.bool_)
        chosen = [numbers[place] for place in alike]
        if chosen:
            found[alike] = self._open_to(chosen)
        if chosen and not self._is_off(RESOURCES_FIT):
            # A row may have less than nothing: what a class does not ask for is not looked at.
            asked = np.where(self.requests[chosen] > 0, self.requests[chosen], np.iinfo(np.int64).min)
            for column in np.flatnonzero((self.requests[chosen] > 0).any(axis=0)).tolist():
                found[alike] &= free[:, column] >= asked[:, column, None]
        for place in set(range(len(numbers))).difference(alike):
            found[place] = self.fits(numbers[place], free, placed)
        return found

    def _asks_for_amounts_only(self, number: int) -> bool:
        pods = self.table.classes[number]
        return pods.problem is None and not (pods.form.ports or pods.volumes or len(self._unreadable))

    def _open_to(self, numbers: Sequence[int]) -> Flags:
        """[len(numbers), N]: what is open before resources are looked at."""
        return np.stack([self._before_resources(number)[1] for number in numbers])

    def room(self, number: int, free: Ints, placed: Mapping[int, Ints]) -> Ints:
        """[N]: how many more pods of the class each row takes by these rules, where it takes one at all."""
        request = self.requests[number]
        asked = np.flatnonzero(request > 0)
        if self._is_off(RESOURCES_FIT) or not len(asked):
            room = np.full(len(self.arrays), UNBOUNDED, dtype=np.int64)
        else:
            room = np.maximum((free[:, asked] // request[asked]).min(axis=1), 0)
        pods = self.table.classes[number]
        if self.excludes_itself(number):
            room = np.minimum(room, 1)
        if pods.volumes and not self._is_off(VOLUME_LIMITS):
            left = self.attachments.room(self.wanted(number), self._attached(placed))
            room = room if left is None else np.minimum(room, left)
        return room

    def excludes_itself(self, number: int) -> bool:
        """Whether two pods of the class cannot be on one node, because of a port, a disk or a claim."""
        pods = self.table.classes[number]
        if pods.form.ports and not self._is_off(NODE_PORTS) and any(self._clash(NODE_PORTS, number, number)):
            return True
        return bool(pods.volumes) and any(self._clash(VOLUME_RESTRICTIONS, number, number))

    @property
    def attachments(self) -> Attachments:
        if self._attachments is None:
            self._attachments = Attachments(self.arrays, self._view.storage)
        return self._attachments

    def wanted(self, number: int) -> Wanted:
        found = self._wanted.get(number)
        if found is None:
            found = self._wanted[number] = Wanted.of(self.table.classes[number], self._view.storage)
        return found

    def _is_off(self, plugin: str) -> bool:
        return plugin in self._profile.disabled

    def _before_resources(self, number: int) -> tuple[Ints, Flags]:
        """Cordon, pin, taints, node affinity and the ports taken by running pods: nothing a trial changes.

        Codes, and where there is none; the same for all classes with these wishes.
        """
        pods = self.table.classes[number]
        wishes = (pods.form.tolerations, pods.form.nodes, pods.form.pin, pods.form.ports)
        found = self._before.get(wishes)
        if found is None:
            codes = np.zeros(len(self.arrays), dtype=np.int64)
            for rule in (
                self.static.unschedulable,
                self.static.node_name,
                self.static.taints,
                self.static.node_affinity,
                self._ports,
            ):
                codes = then(codes, rule(pods))
            found = self._before[wishes] = (codes, np.equal(codes, 0))
        return found

    def _ports(self, pods: PodClass) -> Ints | None:
        if not pods.form.ports or self._is_off(NODE_PORTS):
            return None
        rule = RULES[NODE_PORTS](pods.pod, self._view)
        taken = [row for row, home in enumerate(self.arrays.neighbours.households) if home.ports]
        return self._asked(rule, taken)

    def _asked(self, rule: Rule | Refusal | None, rows: Sequence[int]) -> Ints | None:
        if rule is None or isinstance(rule, Refusal) or not rows:
            return None
        codes = np.zeros(len(self.arrays), dtype=np.int64)
        for row in rows:
            codes[row] = self.refusals.code(rule.refuse(self.arrays.states[row]))
        return codes

    def _resources(self, number: int, free: Ints) -> Ints | None:
        if self._is_off(RESOURCES_FIT):
            return None
        request = self.requests[number]
        asked = np.flatnonzero(request > 0)
        short: Flags = free[:, asked] < request[asked]
        codes = np.zeros(len(self.arrays), dtype=np.int64)
        lacking = np.flatnonzero(short.any(axis=1))
        if len(lacking):
            rows, kind_of = _distinct(short[lacking])
            names = [self.arrays.columns.names[column] for column in asked.tolist()]
            known = [self.refusals.code(_insufficient(names, short[lacking[row]])) for row in rows.tolist()]
            codes[lacking] = np.array(known, dtype=np.int64)[kind_of]
        for row in self._unreadable.tolist():
            codes[row] = self.refusals.code(malformed(RESOURCES_FIT, self.arrays.states[row].problem))
        return codes

    def _with_volumes(self, number: int, codes: Ints, placed: Mapping[int, Ints]) -> Ints:
        pods = self.table.classes[number]
        if not self._is_off(VOLUME_RESTRICTIONS):
            if number not in self._conflicts:
                rule = RULES[VOLUME_RESTRICTIONS](pods.pod, self._view)
                self._conflicts[number] = self._asked(rule, range(len(self.arrays)))
            codes = then(codes, self._conflicts[number])
            codes = self._with_clashes(VOLUME_RESTRICTIONS, number, codes, placed)
        if not self._is_off(VOLUME_LIMITS):
            over = self.attachments.over_limit(self.wanted(number), self._attached(placed))
            codes = codes if over is None else then(codes, over * self.refusals.code(OVER_LIMIT))
        codes = then(codes, self.static.volume_binding(pods))
        return then(codes, self.static.volume_zone(pods))

    def _attached(self, placed: Mapping[int, Ints]) -> list[tuple[Wanted, Ints]]:
        return [(self.wanted(other), rows) for other, rows in placed.items() if self.table.classes[other].volumes]

    def _with_clashes(self, plugin: str, number: int, codes: Ints, placed: Mapping[int, Ints]) -> Ints:
        """With what the pods of a trial take: a port, a disk, a claim."""
        if self._is_off(plugin):
            return codes
        for other, rows in placed.items():
            beside, elsewhere = self._clash(plugin, number, other)
            if beside or elsewhere:
                codes = then(codes, np.where(rows > 0, beside, elsewhere if rows.any() else 0))
        return codes

    def _clash(self, plugin: str, number: int, other: int) -> tuple[int, int]:
        """Codes for a pod of a class where a pod of another class is on the node, and where it is on another node."""
        key = (plugin, number, other)
        found = self._clashes.get(key)
        if found is None:
            found = self._clashes[key] = self._clash_of(plugin, self.table.classes[number], self.table.classes[other])
        return found

    def _clash_of(self, plugin: str, pods: PodClass, other: PodClass) -> tuple[int, int]:
        if plugin == NODE_PORTS and not other.form.ports:
            return (0, 0)
        if plugin == VOLUME_RESTRICTIONS and not other.volumes:
            return (0, 0)
        alone = ClusterView.of([_ANYWHERE], storage=self._view.storage)
        beside = alone.with_pod(other.pod, _ANYWHERE.metadata.name).nodes[_ANYWHERE.metadata.name]
        # Pods of one class have claims of their own unless they are known to share one: the representative's claim is
        # then not in the way of the others.
        exchangeable = pods is other and not pods.one_pod_only
        around = alone if exchangeable else alone.with_pod(other.pod, _ANYWHERE.metadata.name)
        rule = RULES[plugin](pods.pod, around)
        if rule is None or isinstance(rule, Refusal):
            return (0, 0)
        nobody = NodeState(_ANYWHERE)
        return (self.refusals.code(rule.refuse(beside)), self.refusals.code(rule.refuse(nobody)))


def then(codes: Ints, more: Ints | None) -> Ints:
    """The first refusal stands; where there is none, the next rule's answer counts."""
    return codes if more is None else np.where(codes == 0, more, codes)


def _has_room(free: Ints, request: Ints, among: Flags) -> Flags:
    """Which of some rows have room for one. Column by column: there are few of them, and many rows."""
    room = among.copy()
    for column in np.flatnonzero(request > 0).tolist():
        room &= free[:, column] >= request[column]
    return room


def _distinct(flags: Flags) -> tuple[Ints, Ints]:
    """One row of each distinct kind, and which kind each row is. Few columns are numbers: sorting those is quick."""
    if flags.shape[1] > _BITS:
        _, rows, kind_of = np.unique(flags, axis=0, return_index=True, return_inverse=True)
    else:
        numbers = flags @ (1 << np.arange(flags.shape[1], dtype=np.int64)[::-1])
        _, rows, kind_of = np.unique(numbers, return_index=True, return_inverse=True)
    return rows, kind_of.reshape(-1)


def _insufficient(names: Sequence[str], short: Flags) -> Refusal:
    """The words of the rule: pods first, then the others in canonical order."""
    lacking = [name for name, lacks in zip(names, short.tolist(), strict=True) if lacks]
    lacking.sort(key=lambda name: name != PODS)
    words = tuple("Too many pods" if name == PODS else f"Insufficient {name}" for name in lacking)
    return Refusal(plugin=RESOURCES_FIT, messages=words)
