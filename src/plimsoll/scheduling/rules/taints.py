"""Taints, the cordon, and the pin to a node: the rules by which a node keeps pods off or a pod names its node."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.objects.api.nodes import Taint
from plimsoll.scheduling.verdicts import Refusal, Rule

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.objects.api.affinity import Toleration
    from plimsoll.objects.api.pods import Pod
    from plimsoll.scheduling.cluster_view import ClusterView, NodeState

NODE_UNSCHEDULABLE: Final = "NodeUnschedulable"
NODE_NAME: Final = "NodeName"
TAINT_TOLERATION: Final = "TaintToleration"

_CORDON: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_KEEPS_OFF: Final = frozenset({"NoSchedule", "NoExecute"})


def tolerates(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    if toleration.operator in {"", "Equal"}:
        return toleration.value == taint.value
    return toleration.operator == "Exists"


class Tolerations:
    """A pod's tolerations, indexed so that a taint is looked up instead of compared with each of them."""

    __slots__ = ("_any_value", "_values")

    def __init__(self, tolerations: Iterable[Toleration]) -> None:
        self._any_value: set[tuple[str, str]] = set()
        self._values: set[tuple[str, str, str]] = set()
        for toleration in tolerations:
            if toleration.operator == "Exists":
                self._any_value.add((toleration.key, toleration.effect))
            elif toleration.operator in {"", "Equal"}:
                self._values.add((toleration.key, toleration.effect, toleration.value))

    def accept(self, taint: Taint) -> bool:
        """The same answer as `tolerates` for any of them: an empty key or effect stands for all."""
        return any(
            (key, effect) in self._any_value or (key, effect, taint.value) in self._values
            for key in (taint.key, "")
            for effect in (taint.effect, "")
        )

    def find_untolerated(self, taints: Iterable[Taint]) -> Taint | None:
        """The first taint that keeps the pod off; PreferNoSchedule never does."""
        for taint in taints:
            if taint.effect in _KEEPS_OFF and not self.accept(taint):
                return taint
        return None


class _Unschedulable:
    """A cordoned node takes only pods that tolerate the cordon's taint."""

    def refuse(self, place: NodeState) -> Refusal | None:
        if not place.node.spec.unschedulable:
            return None
        return Refusal(plugin=NODE_UNSCHEDULABLE, messages=("node(s) were unschedulable",))


class _Pinned:
    """spec.nodeName names the only node."""

    def __init__(self, name: str) -> None:
        self._name = name

    def refuse(self, place: NodeState) -> Refusal | None:
        if place.name == self._name:
            return None
        return Refusal(
            plugin=NODE_NAME,
            messages=("node(s) didn't match the requested node name",),
            detail=f"spec.nodeName is {self._name}",
        )


class _Tolerated:
    """Every NoSchedule and NoExecute taint of the node is tolerated."""

    def __init__(self, tolerations: Tolerations) -> None:
        self._tolerations = tolerations

    def refuse(self, place: NodeState) -> Refusal | None:
        taints = place.node.spec.taints
        taint = self._tolerations.find_untolerated(taints) if taints else None
        if taint is None:
            return None
        written = f"{taint.key}={taint.value}:{taint.effect}" if taint.value else f"{taint.key}:{taint.effect}"
        return Refusal(plugin=TAINT_TOLERATION, messages=("node(s) had untolerated taint(s)",), detail=written)


def prepare_unschedulable(pod: Pod, _view: ClusterView) -> Rule | None:
    return None if Tolerations(pod.spec.tolerations).accept(_CORDON) else _Unschedulable()


def prepare_node_name(pod: Pod, _view: ClusterView) -> Rule | None:
    return _Pinned(pod.spec.node_name) if pod.spec.node_name else None


def prepare_taints(pod: Pod, _view: ClusterView) -> Rule | None:
    return _Tolerated(Tolerations(pod.spec.tolerations))
