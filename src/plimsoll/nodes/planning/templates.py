"""Which classes a new, empty node of each offer would take, and why not the others.

`Templates(table, offers, view)` asks the rules about a node alone, with the daemons it brings: cordon, taints, node
affinity, ports, resources, volumes, and anti-affinity between the class and those daemons. What depends on other nodes
(spread, company, zones) is the planner's to add; `Predicates` counts it.

* `allowed[T, C]` - flags in the order of the offers and of the table; `codes[T, C]` and `refusal(code)` say why.
* `capacity[T, R]`, `requests[C, R]` - in `columns`: what an empty node has left for pods, and what pods ask.
* `per_node[T, C]` - how many pods of one class alone fit on a node of an offer.
* `why_not(t, c)` - the full refusal with its detail ("needs 8, 4 left"), for reports.

Offers are rows of `Arrays` like any node, so 400 offers with 300 classes cost by distinct label values, taints and
wishes. Their nodes get a name and a hostname of their own: a template's name is nobody's to select.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from msgspec import structs

from plimsoll.nodes.planning.arrays import Arrays
from plimsoll.nodes.planning.companions import AVOIDED, AVOIDS, Terms, means, rows_meant
from plimsoll.nodes.planning.node_rules import NodeRules, then
from plimsoll.nodes.planning.profiles import HOSTNAME
from plimsoll.nodes.planning.static_rules import Verdicts
from plimsoll.scheduling.feasibility import DEFAULT_PROFILE, RULES, Profile
from plimsoll.scheduling.interpod import INTER_POD_AFFINITY
from plimsoll.scheduling.verdicts import Refusal
from plimsoll.scheduling.view import ClusterView, NodeState, PlacedPod

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.planning.classes import ClassTable
    from plimsoll.nodes.planning.offers import Offer
    from plimsoll.solver.problems import Flags, Ints


class Templates:
    """Rows are offers. Made anew each turn; `verdicts` may be kept and shared with `Predicates`."""

    def __init__(
        self,
        table: ClassTable,
        offers: Sequence[Offer],
        view: ClusterView,
        *,
        verdicts: Verdicts | None = None,
        profile: Profile = DEFAULT_PROFILE,
    ) -> None:
        self.table = table
        self.offers = tuple(offers)
        self._view = view
        self._profile = profile
        read: dict[int, PlacedPod] = {}
        states = [empty_node(one, number, known=read) for number, one in enumerate(self.offers)]
        offered = {name for one in self.offers for name in one.free}
        self.arrays = Arrays.of_states(states, resources=(*table.resources, *sorted(offered)))
        self.capacity: Ints = self.arrays.columns.matrix([one.free for one in self.offers])
        self._rules = NodeRules(
            table,
            self.arrays,
            ClusterView.of(namespaces=view.namespaces, storage=view.storage),
            verdicts=Verdicts() if verdicts is None else verdicts,
            profile=profile,
            csi_names=[one.node.metadata.name for one in self.offers],
        )
        self.codes: Ints = self._all_codes()
        self.allowed: Flags = np.equal(self.codes, 0)

    @property
    def columns(self) -> tuple[str, ...]:
        return self.arrays.columns.names

    @property
    def requests(self) -> Ints:
        return self._rules.requests

    @property
    def per_node(self) -> Ints:
        """[T, C]; 0 where the class is not allowed."""
        rooms = [self._rules.room(number, self.capacity, {}) for number in range(len(self.table))]
        room = np.stack(rooms, axis=1) if rooms else np.zeros(self.codes.shape, dtype=np.int64)
        return np.where(self.allowed, room, 0)

    def refusal(self, code: int) -> Refusal:
        """The words of a refusal, without detail."""
        return self._rules.refusals.refusal(code)

    def why_not(self, offer: int, number: int) -> Refusal | None:
        """The refusal of one offer for one class, with its detail; none where the class is allowed."""
        code = int(self.codes[offer, number])
        if not code:
            return None
        plain = self.refusal(code)
        alone = ClusterView.of(namespaces=self._view.namespaces, storage=self._view.storage)
        rule = RULES[plain.plugin](self.table.classes[number].pod, alone)
        told = rule if rule is None or isinstance(rule, Refusal) else rule.refuse(self.arrays.states[offer])
        return told if told is not None and told.messages == plain.messages else plain

    def _all_codes(self) -> Ints:
        codes = [self._rules.codes(number, self.capacity, {}) for number in range(len(self.table))]
        if not codes:
            return np.zeros((len(self.offers), 0), dtype=np.int64)
        if INTER_POD_AFFINITY not in self._profile.disabled and any(one.daemons for one in self.offers):
            codes = [self._beside_daemons(number, one) for number, one in enumerate(codes)]
        return np.stack(codes, axis=1)

    def _beside_daemons(self, number: int, codes: Ints) -> Ints:
        """With anti-affinity between the class and the daemons of each offer, both ways."""
        pods = self.table.classes[number]
        neighbours = self.arrays.neighbours
        if pods.problem is not None or not (pods.has_anti_affinity or neighbours.avoider_rows):
            return codes
        namespaces = self._view.namespaces
        for term in Terms.of(pods).unwanted:
            rows = rows_meant(term, self.arrays, namespaces)
            codes = then(codes, self._labelled(rows, term.topology_key) * self._rules.refusals.code(AVOIDS))
        for kind, rows in neighbours.avoider_rows.items():
            for term in neighbours.kinds.avoiders[kind].terms:
                if means(term, pods.pod, namespaces):
                    codes = then(codes, self._labelled(rows, term.topology_key) * self._rules.refusals.code(AVOIDED))
        return codes

    def _labelled(self, rows: Ints, key: str) -> Flags:
        """Those of the rows that have the label: without it, two pods on a node do not share a domain."""
        found: Flags = np.zeros(len(self.offers), dtype=np.bool_)
        found[rows] = self.arrays.label_ids(key)[rows] >= 0
        return found


def empty_node(offer: Offer, number: int, *, known: dict[int, PlacedPod] | None = None) -> NodeState:
    """A node of the offer as it would join: a name of its own, daemons on it, nothing else.

    `known` are daemons read already, by identity: offers share them.
    """
    meta = offer.node.metadata
    name = f"template-node-{number}-for-{offer.group}"
    labels = {**meta.labels, HOSTNAME: name} if HOSTNAME in meta.labels else meta.labels
    renamed = structs.replace(offer.node, metadata=structs.replace(meta, name=name, labels=labels))
    read: dict[int, PlacedPod] = {} if known is None else known
    for pod in offer.daemons:
        if id(pod) not in read:
            read[id(pod)] = PlacedPod(pod)
    return NodeState(renamed).with_pods(read[id(pod)] for pod in offer.daemons)
