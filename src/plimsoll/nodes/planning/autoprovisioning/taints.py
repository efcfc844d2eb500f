"""Taints for the nodes of a new group, from the tolerations of the pods it is created for. Pure.

A toleration is not a request, but a custom one usually means "there are nodes only for these pods", so it becomes a
taint (docs/design/nodes.md 5.7; the option nap-taints selects how). Tolerations of taints that Kubernetes, Cluster
Autoscaler or the provider set by themselves never do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.nodes.model.gpus import ACCELERATOR_PRESENT, is_gpu
from plimsoll.nodes.model.taints import (
    BEING_DELETED,
    DELETION_CANDIDATE,
    IGNORED_PREFIX,
    STARTUP_PREFIX,
    STATUS_PREFIX,
)
from plimsoll.objects.api.nodes import Taint

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping

    from plimsoll.core.resources import ResourceVector
    from plimsoll.nodes.config.policy import PodRules
    from plimsoll.objects.api.affinity import Toleration

TaintSet = tuple[Taint, ...]
"""Taints sorted by key, effect and value."""

_OF_THE_SYSTEM: Final = ("node.kubernetes.io/", "node.cloudprovider.kubernetes.io/", "node-role.kubernetes.io/")
_OURS: Final = frozenset({BEING_DELETED, DELETION_CANDIDATE})
_KEEPS_OFF: Final = frozenset({"", "NoSchedule", "NoExecute"})


class TransientTaints:
    """Keys of taints that come and go on a node and do not belong to its group."""

    __slots__ = ("_keys", "_prefixes")

    def __init__(self, rules: PodRules) -> None:
        self._prefixes = (STARTUP_PREFIX, STATUS_PREFIX, IGNORED_PREFIX, *rules.startup_taint_prefixes)
        self._keys = _OURS | {*rules.startup_taints, *rules.status_taints, *rules.ignored_taints}

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and (key in self._keys or key.startswith(self._prefixes))


def choose_taints(
    tolerations: Iterable[Toleration],
    *,
    selector: Mapping[str, str],
    how: str,
    transient: TransientTaints,
    provided: Collection[str] = (),
) -> TaintSet:
    """The taints of a new group. `how` is the option nap-taints; `provided`: keys of taints that machine types have."""
    if how == "none":
        return ()
    found: dict[tuple[str, str], Taint] = {}
    custom = (
        _as_taint(toleration)
        for toleration in tolerations
        if _is_custom(toleration, transient) and toleration.key not in provided
    )
    for taint in sorted(custom, key=_order):
        if how == "matched" and selector.get(taint.key) != taint.value:
            continue
        # A node has one taint per key and effect. If a pod tolerates several values, the first one is used.
        found.setdefault((taint.key, taint.effect), taint)
    return tuple(sorted(found.values(), key=_order))


def choose_accelerator_taints(
    capacity: ResourceVector, provided: Iterable[Taint], accept: Callable[[Taint], bool]
) -> TaintSet:
    """The customary taints of a node with accelerators, such as `nvidia.com/gpu=present:NoSchedule`.

    They keep pods off that request no accelerator. Pods that request one tolerate them if their authors or the
    admission plugin ExtendedResourceToleration added the toleration. If `accept` says that some pod does not, the taint
    is PreferNoSchedule: the pod can run there, and the scheduler avoids the node for others while it has a choice.
    """
    known = {taint.key for taint in provided}
    found: list[Taint] = []
    for name in sorted(name for name, amount in capacity.items() if amount and is_gpu(name) and name not in known):
        hard = Taint(key=name, value=ACCELERATOR_PRESENT, effect="NoSchedule")
        found.append(hard if accept(hard) else structs.replace(hard, effect="PreferNoSchedule"))
    return tuple(found)


def merge_taint_sets(sets: Iterable[TaintSet]) -> dict[TaintSet, TaintSet]:
    """Each set to its smallest subset among the others, whose nodes its pods tolerate too (nap-taints-merge).

    The empty set is a subset of every set but is never merged: that would defeat the purpose of the tolerations.
    """
    known = sorted(
        {frozenset(taint_set): taint_set for taint_set in sets if taint_set}.items(),
        key=lambda pair: (len(pair[1]), _sort_taints(pair[1])),
    )
    serving_taints: dict[TaintSet, TaintSet] = {(): ()}
    for content, own in known:
        serving_taints[own] = next(smaller for within, smaller in known if within <= content)
    return serving_taints


def _is_custom(toleration: Toleration, transient: TransientTaints) -> bool:
    key = toleration.key
    if not key or toleration.effect not in _KEEPS_OFF or toleration.operator not in {"", "Equal", "Exists"}:
        return False
    if toleration.toleration_seconds is not None:
        return False  # Such a taint would evict the pod after tolerationSeconds.
    return not (key.startswith(_OF_THE_SYSTEM) or key in transient or is_gpu(key))


def _as_taint(toleration: Toleration) -> Taint:
    value = "" if toleration.operator == "Exists" else toleration.value
    return Taint(key=toleration.key, value=value, effect=toleration.effect or "NoSchedule")


def _order(taint: Taint) -> tuple[str, str, str]:
    return taint.key, taint.effect, taint.value


def _sort_taints(taints: TaintSet) -> list[tuple[str, str, str]]:
    return [_order(taint) for taint in taints]
