"""The nodes that are eligible for a daemon set, and the pod for a node. Pure.

A daemon pod is bound to its node by affinity, not by `spec.nodeName`: the scheduler still checks whether it fits. So
only the node itself (labels, taints, its name) decides here; resources do not.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.kube.controlled_objects.pod_control import build_pod
from plimsoll.local.controller_manager.workloads.controlled_objects.revisions import REVISION_LABEL
from plimsoll.objects.api.affinity import Toleration
from plimsoll.scheduling.rules.taints import Tolerations
from plimsoll.scheduling.selectors import parse_node_selector

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.objects.api.meta import ObjectMeta
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod, PodTemplateSpec
    from plimsoll.objects.api.resource import Resource

GENERATION_LABEL: Final = "pod-template-generation"
_NODE_NAME_FIELD: Final = "metadata.name"
_REQUIRED: Final = "requiredDuringSchedulingIgnoredDuringExecution"
# In the order in which Kubernetes adds them.
_ALWAYS_TOLERATED: Final = (
    ("node.kubernetes.io/not-ready", "NoExecute"),
    ("node.kubernetes.io/unreachable", "NoExecute"),
    ("node.kubernetes.io/disk-pressure", "NoSchedule"),
    ("node.kubernetes.io/memory-pressure", "NoSchedule"),
    ("node.kubernetes.io/pid-pressure", "NoSchedule"),
    ("node.kubernetes.io/unschedulable", "NoSchedule"),
)
_TOLERATED_ON_HOST_NETWORK: Final = ("node.kubernetes.io/network-unavailable", "NoSchedule")


class NodeEligibility(StrEnum):
    """What a node is to a daemon set."""

    RUNS = "runs"
    STAYS = "stays"
    """Nothing is started there, but what runs goes on: a NoSchedule taint came later."""
    LEAVES = "leaves"


class EligibilityChecker:
    """Judges nodes for one template. Raises `InvalidSelector` for an affinity that cannot be read."""

    def __init__(self, template: PodTemplateSpec) -> None:
        spec = template.spec
        affinity = None if spec.affinity is None else spec.affinity.node_affinity
        required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
        self._affinity = None if required is None else parse_node_selector(required)
        self._labels = tuple(spec.node_selector.items())
        self._node_name = spec.node_name
        added = [
            Toleration(key=key, operator="Exists", effect=effect)
            for key, effect in _list_added_tolerations(spec.host_network)
        ]
        self._tolerations = Tolerations([*spec.tolerations, *added])

    def check(self, node: Node) -> NodeEligibility:
        name, labels = node.metadata.name, node.metadata.labels
        if self._node_name and self._node_name != name:
            return NodeEligibility.LEAVES
        if any(labels.get(key) != value for key, value in self._labels):
            return NodeEligibility.LEAVES
        if self._affinity is not None and not self._affinity.matches(labels, name=name):
            return NodeEligibility.LEAVES
        taints = node.spec.taints
        if self._tolerations.find_untolerated(taints) is None:
            return NodeEligibility.RUNS
        drives_out = [taint for taint in taints if taint.effect == "NoExecute"]
        return (
            NodeEligibility.STAYS if self._tolerations.find_untolerated(drives_out) is None else NodeEligibility.LEAVES
        )


def find_target_node(pod: Pod) -> str:
    """The node a daemon pod is on or is meant for; empty if it has neither."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = None if pod.spec.affinity is None else pod.spec.affinity.node_affinity
    required = None if affinity is None else affinity.required_during_scheduling_ignored_during_execution
    for term in () if required is None else required.node_selector_terms:
        for field in term.match_fields:
            if field.key == _NODE_NAME_FIELD and field.operator == "In" and len(field.values) == 1:
                return field.values[0]
    return ""


def build_daemon_pod(
    template: Mapping[str, Any], resource: Resource, owner: ObjectMeta, *, node: str, labels: Mapping[str, str]
) -> dict[str, Any]:
    """The pod of `owner` for one node; `labels` name its revision."""
    body = build_pod(template, resource, owner)
    body["metadata"]["labels"] = {**body["metadata"].get("labels", {}), **labels}
    spec = body["spec"]
    body["spec"] = {
        **spec,
        "affinity": _bind_affinity(spec.get("affinity") or {}, node),
        "tolerations": _add_tolerations(spec.get("tolerations") or (), bool(spec.get("hostNetwork"))),
    }
    return body


def build_revision_labels(digest: str, generation: str) -> dict[str, str]:
    """By which a pod's template is known: by its hash, and by the older count."""
    return {REVISION_LABEL: digest, **({GENERATION_LABEL: generation} if generation else {})}


def _bind_affinity(affinity: Mapping[str, Any], node: str) -> dict[str, Any]:
    """The node takes the place of required terms, which were looked at already; preferences stay."""
    term = {"matchFields": [{"key": _NODE_NAME_FIELD, "operator": "In", "values": [node]}]}
    node_affinity = {**(affinity.get("nodeAffinity") or {}), _REQUIRED: {"nodeSelectorTerms": [term]}}
    return {**affinity, "nodeAffinity": node_affinity}


def _add_tolerations(own: Sequence[Mapping[str, Any]], host_network: bool) -> list[Mapping[str, Any]]:
    tolerations = list(own)
    for key, effect in _list_added_tolerations(host_network):
        ours = {"key": key, "operator": "Exists", "effect": effect}
        same = [number for number, toleration in enumerate(tolerations) if _is_same(toleration, ours)]
        for number in same:
            tolerations[number] = ours
        if not same:
            tolerations.append(ours)
    return tolerations


def _is_same(obj: Mapping[str, Any], other: Mapping[str, Any]) -> bool:
    return all(obj.get(field, "") == other.get(field, "") for field in ("key", "operator", "value", "effect"))


def _list_added_tolerations(host_network: bool) -> tuple[tuple[str, str], ...]:
    return (*_ALWAYS_TOLERATED, _TOLERATED_ON_HOST_NETWORK) if host_network else _ALWAYS_TOLERATED
