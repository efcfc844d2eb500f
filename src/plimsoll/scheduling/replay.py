"""Places many pods one after the other, by the same rules, without recounting the cluster for each of them.

`check_node` checks one pod against one view; after every placement the next check would recount all nodes. A replay
prepares the rules once for pods that are alike (same labels, same spec, different names) and keeps their counts up to
date with what is placed. It answers exactly what `check_node` would answer on the view so far; `tests/scheduling`
compares them. Unlike a view it is mutable.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.scheduling.cluster_view import ClusterView, NodeState, PlacedPod
from plimsoll.scheduling.feasibility import DEFAULT_PROFILE, Prepared, Profile
from plimsoll.scheduling.rules.inter_pod_affinity import INTER_POD_AFFINITY, InterPod, prepare_inter_pod
from plimsoll.scheduling.rules.topology_spread import Spread
from plimsoll.scheduling.verdicts import FITS, DoesNotFit, Refusal, Verdict

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import LabelsKey
    from plimsoll.scheduling.verdicts import Rule


class EquivalenceClass:
    """Pods that differ only in their names: their rules, and the placed form of each."""

    __slots__ = ("counting", "pod", "rules", "sample", "spreads")

    def __init__(self, pod: Pod) -> None:
        self.pod = pod
        self.sample = PlacedPod(pod)
        self.rules: Prepared | None = None
        """The rules with the current counts; None until they are needed again."""
        self.counting: tuple[Spread | InterPod, ...] = ()
        """Those of the rules that count pods; `spreads`: that count by domains of nodes, empty ones too."""
        self.spreads: tuple[Spread, ...] = ()

    def judge(self, rules: Prepared | None) -> None:
        known = rules.rules if rules is not None else ()
        self.rules = rules
        self.counting = tuple(rule for rule in known if isinstance(rule, (Spread, InterPod)))
        self.spreads = tuple(rule for rule in known if isinstance(rule, Spread))


class Replay:
    """A cluster that fills up. Pods of one `EquivalenceClass` are checked by rules prepared once."""

    def __init__(self, view: ClusterView, *, profile: Profile = DEFAULT_PROFILE) -> None:
        self._view = view
        self._profile = profile
        self._nodes = dict(view.nodes)
        self._known: list[EquivalenceClass] = []
        self._claiming: list[EquivalenceClass] = []
        self._repels = view.has_anti_affinity
        self._daemons: dict[int, PlacedPod] = {}
        """By the identity of the pod, which they keep: nodes of one group bring the same daemon pods."""
        self._minding: dict[tuple[LabelsKey, int, bool], tuple[PlacedPod, list[Spread | InterPod]]] = {}
        """Rules that count a pod, by all they can see of it: of hundreds of kinds of pods mostly a few."""

    @property
    def nodes(self) -> Mapping[str, NodeState]:
        return self._nodes

    def add_equivalence_class(self, pod: Pod) -> EquivalenceClass:
        """Pods like this one, to be judged and placed from now on."""
        group = EquivalenceClass(pod)
        self._known.append(group)
        if group.sample.claims:
            self._claiming.append(group)
        self._invalidate_rules(group.sample)
        return group

    def prepare(self) -> None:
        """Count for all groups now. A group that is first used after many placements would recount them."""
        for known in self._known:
            self._get_rules(known)

    def check(self, group: EquivalenceClass, node_name: str) -> Verdict:
        refusal = next(self.find_refusals(group, node_name), None)
        return FITS if refusal is None else DoesNotFit(reason=refusal)

    def find_refusals(self, group: EquivalenceClass, node_name: str) -> Iterator[Refusal]:
        return self._get_rules(group).find_refusals(self._nodes[node_name])

    def place(self, group: EquivalenceClass, node_name: str, name: str) -> None:
        """Place one pod of the group on the node, whether it fits or not."""
        self._put(group.sample.rename(name), node_name)

    def add_node(self, node: Node, daemons: Iterable[Pod] = ()) -> None:
        """A node joins, with the pods that come with it."""
        state = NodeState(node)
        self._nodes[state.name] = state
        for known in self._known:
            for rule in known.spreads:
                rule.note_node(state)
        for daemon in daemons:
            placed = self._daemons.get(id(daemon))
            if placed is None:
                placed = self._daemons[id(daemon)] = PlacedPod(daemon)
                self._invalidate_rules(placed)
            self._put(placed, state.name)

    def _put(self, placed: PlacedPod, node_name: str) -> None:
        state = self._nodes[node_name] = self._nodes[node_name].with_pods((placed,))
        for rule in self._list_affected_rules(placed):
            rule.note(placed, state)
        # Exclusive claims and attach limits look at the whole cluster: they are read again.
        for known in self._claiming:
            known.judge(None)

    def _list_affected_rules(self, placed: PlacedPod) -> list[Spread | InterPod]:
        key = (placed.labels_key, id(placed.anti_affinity), placed.leaving)
        found = self._minding.get(key)
        if found is None:
            rules = [rule for known in self._known for rule in known.counting if not known.sample.claims]
            found = self._minding[key] = (placed, [rule for rule in rules if rule.concerns(placed)])
        return found[1]

    def _invalidate_rules(self, placed: PlacedPod) -> None:
        """A placed pod has anti-affinity: rules prepared before must be prepared again with it."""
        if placed.anti_affinity and not self._repels:
            self._repels = True
            self._minding.clear()
            for known in self._known:
                known.judge(None)

    def build_view(self) -> ClusterView:
        """The cluster as it stands now, for questions that are asked once."""
        anti = {name: None for name, state in self._nodes.items() if _has_anti_affinity(state)} if self._repels else {}
        return ClusterView(
            dict(self._nodes), namespaces=self._view.namespaces, storage=self._view.storage, anti_affine=anti
        )

    def _get_rules(self, group: EquivalenceClass) -> Prepared:
        if group.rules is None:
            view = self.build_view()
            rules = Prepared(group.pod, view, profile=self._profile)
            if self._repels and INTER_POD_AFFINITY not in self._profile.disabled:
                self._watch_for_repulsion(rules, group.pod, view)
            group.judge(rules)
            for sample, minding in self._minding.values() if not group.sample.claims else ():
                minding += [rule for rule in group.counting if rule.concerns(sample)]
            return rules
        return group.rules

    def _watch_for_repulsion(self, rules: Prepared, pod: Pod, view: ClusterView) -> None:
        """Count pods that avoid this one even if there are none yet: a view without such pods omits the rule."""
        if any(isinstance(rule, InterPod) for rule in rules.rules) or rules.everywhere:
            return
        fresh: Rule | Refusal | None = prepare_inter_pod(pod, view, always=True)
        if isinstance(fresh, InterPod):
            rules.rules = (*rules.rules, fresh)


def _has_anti_affinity(state: NodeState) -> bool:
    return any(placed.anti_affinity for placed in state.pods.values())
