"""The rules that read only the node object and the pod: cordon, nodeName, taints, node affinity, volume topology.

Each rule of `plimsoll.scheduling` is evaluated once per distinct pair of what the pod requires and what the rule reads
of a node, and looked up for all other pairs: thousands of nodes cost as much as their distinct label values.
`RefusalCache` may be kept between loop iterations, because it is keyed by content.

Results are codes: 0 fits, otherwise the number of a refusal in `Refusals`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import numpy as np

from plimsoll.nodes.planning.equivalence.volume_keys import SELECTED_NODE, list_pod_claims
from plimsoll.nodes.planning.state.node_arrays import number_rows
from plimsoll.scheduling.feasibility import RULES
from plimsoll.scheduling.rules.node_affinity import NODE_AFFINITY
from plimsoll.scheduling.rules.taints import NODE_NAME, NODE_UNSCHEDULABLE, TAINT_TOLERATION
from plimsoll.scheduling.rules.volume_binding import VOLUME_BINDING, VOLUME_ZONE
from plimsoll.scheduling.storage import get_class_name, get_volume_class_name, is_bound
from plimsoll.scheduling.verdicts import Refusal

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from plimsoll.nodes.model.planner_cache import PlannerCache
    from plimsoll.nodes.planning.equivalence.pod_classes import PodClass
    from plimsoll.nodes.planning.state.node_arrays import NodeArrays, RowGroups
    from plimsoll.objects.api.affinity import NodeSelector
    from plimsoll.objects.api.storage import PersistentVolumeClaim
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState
    from plimsoll.scheduling.verdicts import Rule
    from plimsoll.solver.problem import Ints

FITS: Final = 0

_ZONE_KEYS: Final = (
    "failure-domain.beta.kubernetes.io/zone",
    "failure-domain.beta.kubernetes.io/region",
    "topology.kubernetes.io/zone",
    "topology.kubernetes.io/region",
)
_KEEPS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})


class Refusals:
    """Numbers for refusals; equal refusals of one rule share a number."""

    def __init__(self) -> None:
        self._listed: list[Refusal | None] = [None]
        self._numbers: dict[tuple[str, tuple[str, ...]], int] = {}

    def intern(self, refusal: Refusal | None) -> int:
        if refusal is None:
            return FITS
        key = (refusal.plugin, refusal.messages)
        number = self._numbers.get(key)
        if number is None:
            number = self._numbers[key] = len(self._listed)
            self._listed.append(Refusal(plugin=refusal.plugin, messages=refusal.messages))
        return number

    def get_refusal(self, code: int) -> Refusal:
        found = self._listed[code]
        if found is None:
            raise LookupError("0 is not a refusal")
        return found


class RefusalCache:
    """Codes by (rule, requirement of the pod, fields that the rule reads of the node), with their refusals."""

    def __init__(self) -> None:
        self.refusals = Refusals()
        self.codes: dict[tuple[Any, ...], int] = {}


# Entries are only added; beyond this number the cache starts again.
_MOST_REFUSALS: Final = 200_000


def get_refusal_cache(cache: PlannerCache) -> RefusalCache:
    """The codes of earlier loop iterations, unless there are too many of them."""
    if len(cache.get(RefusalCache).codes) > _MOST_REFUSALS:
        cache.drop(RefusalCache)
    return cache.get(RefusalCache)


class StaticPredicates:
    """Codes of classes on the rows of some arrays. `disabled`: rules that the profile disables."""

    def __init__(
        self,
        arrays: NodeArrays,
        view: ClusterView,
        *,
        refusal_cache: RefusalCache,
        disabled: frozenset[str] = frozenset(),
    ) -> None:
        self._arrays = arrays
        self._view = view
        self._refusal_cache = refusal_cache
        self._disabled = disabled
        self._cordoned, self._taints = arrays.memoize(("taints",), lambda: _group_by_taints(arrays))
        self._by_requirement: dict[tuple[Any, ...], Ints | None] = {}

    def check_unschedulable(self, pods: PodClass) -> Ints | None:
        """Codes of all rows; None if every row fits or the rule is disabled. The other checks return the same."""
        if not self._cordoned.any() or self._is_off(NODE_UNSCHEDULABLE):
            return None
        return self._memoize(NODE_UNSCHEDULABLE, pods.scheduling_key.tolerations, lambda: self._check_per_cordon(pods))

    def check_node_name(self, pods: PodClass) -> Ints | None:
        if not pods.scheduling_key.node_name or self._is_off(NODE_NAME):
            return None
        pin = pods.scheduling_key.node_name
        groups = self._arrays.group_rows((), names=(pin,))
        return self._memoize(NODE_NAME, pin, lambda: self._check_groups(NODE_NAME, pods, groups, lambda _: ()))

    def check_taints(self, pods: PodClass) -> Ints | None:
        return None if self._is_off(TAINT_TOLERATION) else self.find_untolerated(pods)

    def check_node_affinity(self, pods: PodClass) -> Ints | None:
        return None if self._is_off(NODE_AFFINITY) else self.find_unselected(pods)

    def find_untolerated(self, pods: PodClass) -> Ints | None:
        """Codes of taints even if the rule is disabled: topology spread needs them for eligible nodes."""
        return self._memoize(TAINT_TOLERATION, pods.scheduling_key.tolerations, lambda: self._check_per_taints(pods))

    def find_unselected(self, pods: PodClass) -> Ints | None:
        """Codes of node affinity even if the rule is disabled."""
        if not pods.scheduling_key.node_constraints:
            return None
        return self._memoize(NODE_AFFINITY, pods.scheduling_key.node_constraints, lambda: self._check_per_labels(pods))

    def check_volume_binding(self, pods: PodClass) -> Ints | None:
        return self._check_per_volume_topology(VOLUME_BINDING, pods)

    def check_volume_zone(self, pods: PodClass) -> Ints | None:
        return self._check_per_volume_topology(VOLUME_ZONE, pods)

    def _is_off(self, plugin: str) -> bool:
        return plugin in self._disabled

    def _memoize(self, plugin: str, requirement: Any, evaluate: Callable[[], Ints]) -> Ints | None:
        """One result for all classes with the same requirement; all zeros become None."""
        key = (plugin, requirement)
        if key not in self._by_requirement:
            codes = evaluate()
            self._by_requirement[key] = codes if codes.any() else None
        return self._by_requirement[key]

    def _check_per_cordon(self, pods: PodClass) -> Ints:
        groups = number_rows(self._cordoned)
        return self._check_groups(
            NODE_UNSCHEDULABLE,
            pods,
            groups,
            lambda place: (pods.scheduling_key.tolerations, place.node.spec.unschedulable),
        )

    def _check_per_taints(self, pods: PodClass) -> Ints:
        groups = number_rows(self._taints)
        return self._check_groups(
            TAINT_TOLERATION, pods, groups, lambda place: (pods.scheduling_key.tolerations, _build_taint_key(place))
        )

    def _check_per_labels(self, pods: PodClass) -> Ints:
        keys, names = _collect_label_keys(pods.scheduling_key.node_constraints)
        listed = sorted(keys)
        return self._check_groups(
            NODE_AFFINITY,
            pods,
            self._arrays.group_rows(keys, names=names),
            lambda place: (
                pods.scheduling_key.node_constraints,
                tuple(place.labels.get(key) for key in listed),
                place.name if place.name in names else "",
            ),
        )

    def _check_per_volume_topology(self, plugin: str, pods: PodClass) -> Ints | None:
        """Not cached between loops: the answer depends on claims and volumes, which are not part of the key."""
        if not pods.volumes or self._is_off(plugin):
            return None
        keys, names = _read_by_volumes(pods, self._view)
        groups = self._arrays.group_rows(keys, names=names)
        return self._memoize(plugin, pods.volumes, lambda: self._check_groups(plugin, pods, groups, lambda _: ()))

    def _check_groups(
        self,
        plugin: str,
        pods: PodClass,
        groups: RowGroups,
        read: Callable[[NodeState], tuple[Any, ...]],
    ) -> Ints:
        """Apply the rule to one row per group. `read` gives the fields that decide the result; empty: do not cache."""
        rule = RULES[plugin](pods.pod, self._view)
        codes = np.zeros(len(groups.rows), dtype=np.int64)
        if isinstance(rule, Refusal):
            codes[:] = self._refusal_cache.refusals.intern(rule)
        elif rule is not None:
            for position, row in enumerate(groups.rows.tolist()):
                codes[position] = self._check_place(plugin, rule, self._arrays.states[row], read)
        return codes[groups.group_of]

    def _check_place(
        self, plugin: str, rule: Rule, place: NodeState, read: Callable[[NodeState], tuple[Any, ...]]
    ) -> int:
        content = read(place)
        if not content:
            return self._refusal_cache.refusals.intern(rule.refuse(place))
        key = (plugin, *content)
        known = self._refusal_cache.codes.get(key)
        if known is None:
            known = self._refusal_cache.codes[key] = self._refusal_cache.refusals.intern(rule.refuse(place))
        return known


def _group_by_taints(arrays: NodeArrays) -> tuple[Ints, Ints]:
    cordoned = np.array([node_state.node.spec.unschedulable for node_state in arrays.states], dtype=np.int64)
    numbers: dict[tuple[Any, ...], int] = {}
    taints = np.array(
        [numbers.setdefault(_build_taint_key(node_state), len(numbers)) for node_state in arrays.states], dtype=np.int64
    )
    return cordoned, taints


def _build_taint_key(place: NodeState) -> tuple[Any, ...]:
    taints = place.node.spec.taints
    return (
        tuple((taint.key, taint.value, taint.effect) for taint in taints if taint.effect in _KEEPS_OFF)
        if taints
        else ()
    )


def _collect_label_keys(nodes: tuple[Any, ...]) -> tuple[set[str], set[str]]:
    """Label keys that the requirements read, and the node names they mention; other nodes are not distinguished."""
    selector, terms = nodes
    keys = {key for key, _ in selector}
    keys.update(expression[0] for expressions, _ in terms or () for expression in expressions)
    return keys, {name for _, fields in terms or () for _, _, values in fields for name in values}


def _read_by_volumes(pods: PodClass, view: ClusterView) -> tuple[set[str], set[str]]:
    """Label keys and node names that decide where the volumes of a class can be used or provisioned."""
    keys = set(_ZONE_KEYS)
    names: set[str] = set()
    found = (view.storage.claims.get(key) for key in list_pod_claims(pods.pod))
    for claim in (volume_claim for volume_claim in found if volume_claim is not None):
        names.update(value for key, value in claim.metadata.annotations.items() if key == SELECTED_NODE)
        for selector in _iterate_selectors_of_claim(claim, view):
            for term in selector.node_selector_terms:
                keys.update(requirement.key for requirement in term.match_expressions)
                names.update(name for requirement in term.match_fields for name in requirement.values)
        storage_class = view.storage.find_class(claim)
        topologies = () if storage_class is None else storage_class.allowed_topologies
        keys.update(requirement.key for topology in topologies for requirement in topology.match_label_expressions)
    return keys, names


def _iterate_selectors_of_claim(claim: PersistentVolumeClaim, view: ClusterView) -> Iterable[NodeSelector]:
    if is_bound(claim):
        bound = view.storage.volumes.get(claim.spec.volume_name)
        volumes = [] if bound is None else [bound]
    else:
        name = get_class_name(claim)
        volumes = [volume for volume in view.storage.volumes.values() if get_volume_class_name(volume) == name]
    affinities = (volume.spec.node_affinity for volume in volumes)
    return [affinity.required for affinity in affinities if affinity is not None and affinity.required is not None]
