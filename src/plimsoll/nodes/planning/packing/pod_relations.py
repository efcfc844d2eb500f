"""Which pending classes depend on which others by affinity, anti-affinity and spread, and in what order to place them.

Terms and selectors depend on labels and namespaces, never on sizes: classes that differ only in size form one
`label_group`, and each relation is computed once per group. A class is placed in a layer after its affinity targets,
and not in one layer with a class that it avoids, because a layer knows only what earlier layers placed.

Within a layer, pods that a spread constraint counts come before the class with the constraint. Spread over nodes is the
hardest: a class alone on its nodes may fill them evenly to any height, while every node opened for another class limits
it. So up to a few such classes go one after the other; many of them go together.
"""

from __future__ import annotations

from functools import cached_property
from itertools import count, groupby
from typing import TYPE_CHECKING, Any, Final

from plimsoll.nodes.model.node_labels import HOSTNAME

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.core.selectors import LabelSelector
    from plimsoll.nodes.planning.equivalence.pod_classes import ClassTable, PodClass
    from plimsoll.nodes.planning.predicates.predicates import Predicates
    from plimsoll.nodes.planning.predicates.spread_counts import SpreadCount
    from plimsoll.nodes.planning.problem.problem import ScaleUpProblem
    from plimsoll.scheduling.cluster_view import ClusterView


class PodRelations:
    """The relations among the classes of one table."""

    def __init__(self, table: ClassTable, rules: Predicates, view: ClusterView) -> None:
        self._table = table
        self._rules = rules
        self._namespaces = view.namespaces
        numbers: dict[tuple[Any, ...], int] = {}
        self.label_group_of = [numbers.setdefault(self._build_key(pod_class), len(numbers)) for pod_class in table]
        self.members: list[list[int]] = [[] for _ in numbers]
        for index, label_group in enumerate(self.label_group_of):
            self.members[label_group].append(index)
        self._pods = [table.classes[members[0]].pod for members in self.members]
        self._counted_classes: dict[SpreadCount, frozenset[int]] = {}

    def _build_key(self, pod_class: PodClass) -> tuple[Any, ...]:
        meta, form = pod_class.pod.metadata, pod_class.scheduling_key
        seen = sorted((key, value) for key, value in meta.labels.items() if key in self._table.visible.label_keys)
        return meta.namespace, tuple(seen), form.affinity, form.anti_affinity, form.spread

    @property
    def label_groups(self) -> range:
        return range(len(self.members))

    def sample(self, label_group: int) -> PodClass:
        return self._table.classes[self.members[label_group][0]]

    # ---- between label groups

    @cached_property
    def affinity_targets(self) -> list[tuple[int, ...]]:
        """Per label group: the label groups that match its affinity terms, possibly itself."""
        return [self._find_affinity_targets(label_group) for label_group in self.label_groups]

    def _find_affinity_targets(self, label_group: int) -> tuple[int, ...]:
        if not self.sample(label_group).has_affinity:
            return ()
        terms = self._rules.get_affinity_terms(self.members[label_group][0])
        possible = self._find_candidates(term.selector for term in terms.affinity)
        return tuple(other for other in possible if terms.is_affinity_target(self._pods[other], self._namespaces))

    @cached_property
    def avoided(self) -> list[dict[int, tuple[str, ...]]]:
        """Per label group: the label groups it must be apart from, either way, with topology keys; possibly itself."""
        found: list[dict[int, tuple[str, ...]]] = [{} for _ in self.label_groups]
        for label_group in self.label_groups:
            if not self.sample(label_group).has_anti_affinity:
                continue
            terms = self._rules.get_affinity_terms(self.members[label_group][0])
            for other in self._find_candidates(term.selector for term in terms.anti_affinity):
                if keys := terms.collect_anti_affinity_keys(self._pods[other], self._namespaces):
                    for first, second in ((label_group, other), (other, label_group)):
                        found[first][second] = tuple(sorted({*found[first].get(second, ()), *keys}))
        return found

    @cached_property
    def counted(self) -> list[tuple[int, ...]]:
        """Per label group: the label groups whose pods its spread constraints count."""
        return [self._find_counted_groups(label_group) for label_group in self.label_groups]

    def _find_counted_groups(self, label_group: int) -> tuple[int, ...]:
        spreads = self._rules.get_spreads(self.members[label_group][0])
        return tuple(
            sorted(
                {
                    self.label_group_of[number]
                    for spread_count in spreads
                    for number in self.find_counted_classes(spread_count)
                }
            )
        )

    def find_counted_classes(self, spread: SpreadCount) -> frozenset[int]:
        """The classes whose pods a constraint counts."""
        if spread not in self._counted_classes:
            label_groups = [
                other for other in self._find_candidates([spread.selector]) if spread.matches(self._pods[other])
            ]
            self._counted_classes[spread] = frozenset(
                number for label_group in label_groups for number in self.members[label_group]
            )
        return self._counted_classes[spread]

    def _find_candidates(self, selectors: Iterable[LabelSelector]) -> Sequence[int]:
        """Label groups that a selector may match, by an index: most selectors require one value of some label."""
        found: set[int] = set()
        for selector in selectors:
            exact = [(requirement.key, selector.get_exact_value(requirement.key)) for requirement in selector]
            label = next(((key, value) for key, value in exact if value is not None), None)
            if label is None:
                return self.label_groups
            found.update(self._by_label.get(label, ()))
        return sorted(found)

    @cached_property
    def _by_label(self) -> dict[tuple[str, str], list[int]]:
        found: dict[tuple[str, str], list[int]] = {}
        for label_group, pod in enumerate(self._pods):
            for label in pod.metadata.labels.items():
                found.setdefault(label, []).append(label_group)
        return found

    def find_clique(self, label_group: int) -> tuple[int, ...]:
        """Label groups whose pods all avoid each other and themselves over the same keys: one per domain of them all.

        Empty if the relations are not that regular.
        """
        avoided = self.avoided[label_group]
        keys = avoided.get(label_group, ())
        if not keys:
            return ()
        is_equal = all(self.avoided[other].keys() == avoided.keys() for other in avoided)
        same = all(found == keys for other in avoided for found in self.avoided[other].values())
        return tuple(sorted(avoided)) if is_equal and same else ()

    def find_mutual_group(self, label_group: int) -> tuple[int, ...]:
        """Label groups that all have each other and themselves as affinity targets; empty for a group without such."""
        targets = self.affinity_targets[label_group]
        return (
            targets
            if label_group in targets and all(self.affinity_targets[other] == targets for other in targets)
            else ()
        )


def sort_into_layers(classes: Sequence[int], relations: PodRelations) -> tuple[list[list[int]], list[int]]:
    """Classes in planning order by layer, and the classes whose affinity targets form a cycle, which have no order.

    `classes` are in queue order. Classes that only avoid others, and are not the target of a class, keep that order.
    """
    level: dict[int, int] = {}
    circular: set[int] = set()
    for label_group in relations.label_groups:
        _visit(label_group, relations, level, circular, path=())
    chosen: dict[int, int] = {}
    for label_group in _sort_counted_first(
        dict.fromkeys(relations.label_group_of[number] for number in classes), relations, level
    ):
        clique = relations.find_clique(label_group)
        apart = [other for other in relations.avoided[label_group] if other != label_group and other not in clique]
        taken = {chosen[other] for other in apart if other in chosen}
        targets = [
            chosen[target] + 1
            for target in relations.affinity_targets[label_group]
            if level[target] < level[label_group] and target in chosen
        ]
        counted = [chosen[other] for other in relations.counted[label_group] if other in chosen]
        least = max([level[label_group], *targets, *counted])
        chosen[label_group] = next(layer for layer in count(least) if layer not in taken)
    found: list[list[int]] = [[] for _ in range(max(chosen.values(), default=-1) + 1)]
    left_over: list[int] = []
    for number in classes:
        label_group = relations.label_group_of[number]
        (left_over if label_group in circular else found[chosen[label_group]]).append(number)
    return [layer for layer in found if layer], left_over


def _sort_counted_first(
    label_groups: Iterable[int], relations: PodRelations, level: Mapping[int, int]
) -> Iterator[int]:
    """Affinity targets come first, then label groups that others count; otherwise queue order."""
    for _, equal in groupby(sorted(label_groups, key=level.__getitem__), key=level.__getitem__):
        waiting = dict.fromkeys(equal)
        while waiting:
            known = list(waiting)
            free = (
                candidate
                for candidate in known
                if not (waiting.keys() - {candidate}).intersection(relations.counted[candidate])
            )
            label_group = next(free, known[0])
            del waiting[label_group]
            yield label_group


def _visit(
    label_group: int, relations: PodRelations, level: dict[int, int], circular: set[int], *, path: Sequence[int]
) -> int:
    if label_group in path:
        circular.update(path[path.index(label_group) :])
        return 0
    if label_group not in level:
        mutual_group = relations.find_mutual_group(label_group)
        targets = [
            target
            for target in relations.affinity_targets[label_group]
            if target != label_group and target not in mutual_group
        ]
        below = [_visit(target, relations, level, circular, path=(*path, label_group)) for target in targets]
        level[label_group] = 1 + max(below, default=-1)
    return level[label_group]


_APART: Final = 3
"""Up to this many classes spread over nodes are placed one after the other; more are placed together."""


def split_layer(problem: ScaleUpProblem, relations: PodRelations, layer: Sequence[int]) -> list[list[int]]:
    """A layer in parts: counted classes first; classes that count each other on a node are in different parts."""
    if not any(problem.table.classes[number].has_spread for number in layer):
        return [list(layer)]
    waiting = dict.fromkeys(relations.label_group_of[number] for number in layer)
    part_of: dict[int, int] = {}
    while waiting:
        label_group = _find_next_independent(waiting, relations)
        del waiting[label_group]
        earlier = [
            part_of[other] for other in relations.counted[label_group] if other in part_of and other != label_group
        ]
        part_of[label_group] = max(earlier, default=-1) + 1
    levelled = [number for number in layer if _counts_itself_on_nodes(problem, relations, number)]
    apart = {*levelled} if len(levelled) <= _APART else set[int]()
    parts: dict[tuple[int, int], list[int]] = {}
    for number in layer:
        key = (part_of[relations.label_group_of[number]], number if number in apart else -1)
        parts.setdefault(key, []).append(number)
    return [parts[key] for key in sorted(parts)]


def _counts_itself_on_nodes(problem: ScaleUpProblem, relations: PodRelations, number: int) -> bool:
    label_group = relations.label_group_of[number]
    return label_group in relations.counted[label_group] and any(
        spread_count.key == HOSTNAME for spread_count in problem.rules.get_spreads(number)
    )


def _find_next_independent(waiting: Mapping[int, None], relations: PodRelations) -> int:
    """The first label group whose constraints count none of the others; if there is none, the first."""
    free = (
        candidate
        for candidate in waiting
        if not any(other in waiting and other != candidate for other in relations.counted[candidate])
    )
    return next(free, next(iter(waiting)))
