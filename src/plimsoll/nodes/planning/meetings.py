"""Which waiting classes look at which others, and in what order they are so best placed.

Terms and selectors see labels, namespaces and each other, never sizes: classes that differ in size only form one
`party`, and every question is asked once a party. A class is placed in a layer after those whose company it wants, and
not in one layer with a class that keeps it away: what was placed in earlier layers is known when a layer is planned.
"""

from __future__ import annotations

from functools import cached_property
from itertools import count
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from plimsoll.nodes.planning.classes import ClassTable, PodClass
    from plimsoll.nodes.planning.predicates import Predicates
    from plimsoll.scheduling.view import ClusterView


class Meetings:
    """Among the classes of one table."""

    def __init__(self, table: ClassTable, rules: Predicates, view: ClusterView) -> None:
        self._table = table
        self._rules = rules
        self._namespaces = view.namespaces
        numbers: dict[tuple[Any, ...], int] = {}
        self.party_of = [numbers.setdefault(self._key(one), len(numbers)) for one in table]
        self.members: list[list[int]] = [[] for _ in numbers]
        for index, party in enumerate(self.party_of):
            self.members[party].append(index)
        self._pods = [table.classes[members[0]].pod for members in self.members]

    def _key(self, one: PodClass) -> tuple[Any, ...]:
        meta, form = one.pod.metadata, one.form
        seen = sorted((key, value) for key, value in meta.labels.items() if key in self._table.in_play.label_keys)
        return meta.namespace, tuple(seen), form.affinity, form.anti_affinity, form.spread

    @property
    def parties(self) -> range:
        return range(len(self.members))

    def sample(self, party: int) -> PodClass:
        return self._table.classes[self.members[party][0]]

    # ---- between parties

    @cached_property
    def company(self) -> list[tuple[int, ...]]:
        """Of each party: those whose pods it wants near it, itself among them if it matches its own terms."""
        return [self._company(party) for party in self.parties]

    def _company(self, party: int) -> tuple[int, ...]:
        if not self.sample(party).has_affinity:
            return ()
        terms = self._rules.terms(self.members[party][0])
        return tuple(other for other in self.parties if terms.wants(self._pods[other], self._namespaces))

    @cached_property
    def shunned(self) -> list[dict[int, tuple[str, ...]]]:
        """Of each party: those that keep it away or that it keeps away, by topology keys; maybe itself."""
        found: list[dict[int, tuple[str, ...]]] = [{} for _ in self.parties]
        for party in self.parties:
            if not self.sample(party).has_anti_affinity:
                continue
            terms = self._rules.terms(self.members[party][0])
            for other in self.parties:
                if keys := terms.keys_avoiding(self._pods[other], self._namespaces):
                    for one, two in ((party, other), (other, party)):
                        found[one][two] = tuple(sorted({*found[one].get(two, ()), *keys}))
        return found

    @cached_property
    def counted(self) -> list[tuple[int, ...]]:
        """Of each party: those whose pods its spread constraints count."""
        return [self._counted(party) for party in self.parties]

    def _counted(self, party: int) -> tuple[int, ...]:
        spreads = self._rules.spreads(self.members[party][0])
        return tuple(other for other in self.parties if any(one.means(self._pods[other]) for one in spreads))

    def clique(self, party: int) -> tuple[int, ...]:
        """Parties whose pods all avoid each other and themselves over the same keys: one per domain of them all.

        Empty where it is not so simple.
        """
        shunned = self.shunned[party]
        keys = shunned.get(party, ())
        if not keys:
            return ()
        alike = all(self.shunned[one].keys() == shunned.keys() for one in shunned)
        same = all(found == keys for one in shunned for found in self.shunned[one].values())
        return tuple(sorted(shunned)) if alike and same else ()

    def family(self, party: int) -> tuple[int, ...]:
        """Parties that all want each other's company and their own; empty for one that is no company to itself."""
        company = self.company[party]
        return company if party in company and all(self.company[one] == company for one in company) else ()


def layers(classes: Iterable[int], meetings: Meetings) -> tuple[list[list[int]], list[int]]:
    """Classes in the order of planning, and those that want company in a circle: nobody can say who comes first."""
    level: dict[int, int] = {}
    circular: set[int] = set()
    for party in meetings.parties:
        _visit(party, meetings, level, circular, path=())
    chosen: dict[int, int] = {}
    for party in sorted(meetings.parties, key=lambda one: (level[one], one)):
        clique = meetings.clique(party)
        apart = [one for one in meetings.shunned[party] if one != party and one not in clique]
        taken = {chosen[one] for one in apart if one in chosen}
        chosen[party] = next(layer for layer in count(level[party]) if layer not in taken)
    found: list[list[int]] = [[] for _ in range(max(chosen.values(), default=-1) + 1)]
    left_over: list[int] = []
    for number in classes:
        party = meetings.party_of[number]
        (left_over if party in circular else found[chosen[party]]).append(number)
    return [layer for layer in found if layer], left_over


def _visit(party: int, meetings: Meetings, level: dict[int, int], circular: set[int], *, path: Sequence[int]) -> int:
    if party in path:
        circular.update(path[path.index(party) :])
        return 0
    if party not in level:
        family = meetings.family(party)
        company = [one for one in meetings.company[party] if one != party and one not in family]
        below = [_visit(one, meetings, level, circular, path=(*path, party)) for one in company]
        level[party] = 1 + max(below, default=-1)
    return level[party]
