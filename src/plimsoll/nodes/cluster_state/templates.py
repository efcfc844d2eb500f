"""Node templates: what the next node of each group would be (docs/design/nodes.md 6.5).

A template comes from a ready node of the group, else from a remembered one, else from the provider, and as a last
resort from any node of the group. What is temporary on a node (its name, taints of its state) is removed when the
template is used.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from enum import StrEnum
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.durations import add_seconds
from plimsoll.nodes.cluster_state.node_readiness import StartupTaints, classify_readiness, is_tainted_for_deletion
from plimsoll.nodes.model.pod_traits import is_daemon_pod, is_mirror_pod

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence
    from datetime import datetime

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.objects.api.nodes import Node
    from plimsoll.objects.api.pods import Pod

_STABLE_AFTER_S: Final = 60.0
_OF_CONDITIONS: Final = frozenset(
    {
        "node.kubernetes.io/not-ready",
        "node.kubernetes.io/unreachable",
        "node.kubernetes.io/unschedulable",
        "node.kubernetes.io/memory-pressure",
        "node.kubernetes.io/disk-pressure",
        "node.kubernetes.io/network-unavailable",
        "node.kubernetes.io/pid-pressure",
        "node.kubernetes.io/out-of-service",
        "node.cloudprovider.kubernetes.io/uninitialized",
        "node.cloudprovider.kubernetes.io/shutdown",
    }
)


class TemplateSource(StrEnum):
    """The source of a template."""

    REAL_NODE = "real node"
    REMEMBERED = "remembered node"
    PROVIDER = "provider"
    ANY_NODE = "any node"


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupTemplate:
    """The template of a node group: a node, and the daemon pods on it."""

    node: Node
    daemons: tuple[Pod, ...] = ()
    source: TemplateSource

    @property
    def daemons_are_known(self) -> bool:
        """False for provider templates, which lack DaemonSet pods: the planner adds them."""
        return self.source is not TemplateSource.PROVIDER


@dataclass(frozen=True, slots=True, kw_only=True)
class GroupNodes:
    """The input of templates in one loop iteration."""

    nodes: Mapping[str, Sequence[Node]]
    """Nodes by group id."""
    pods: Mapping[str, Collection[Pod]]
    """Pods by node name."""
    gpu_label: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remembered:
    template: GroupTemplate
    at: datetime


class GroupTemplates:
    """Remembers the last usable node of each group. `provided` are templates of the provider, by group."""

    def __init__(self, policy: Policy) -> None:
        self.policy = policy
        self._remembered: dict[str, _Remembered] = {}

    def update(
        self, found: GroupNodes, groups: Iterable[str], provided: Mapping[str, GroupTemplate], now: datetime
    ) -> dict[str, GroupTemplate]:
        """The template of each group that can have one. Groups that no longer exist are forgotten."""
        there = sorted(groups)
        self._forget(there, now)
        templates: dict[str, GroupTemplate] = {}
        for group in there:
            template = self._choose_template(group, found, provided.get(group), now)
            if template is not None:
                templates[group] = template
        return templates

    def needs_provider_template(self, group: str, found: GroupNodes, now: datetime) -> bool:
        """Whether the provider's template is needed: the group has no usable node, and none is remembered."""
        return self._find_example(found.nodes.get(group, ()), found.gpu_label, now) is None and not self._is_remembered(
            group, now
        )

    def _choose_template(
        self, group: str, found: GroupNodes, provided: GroupTemplate | None, now: datetime
    ) -> GroupTemplate | None:
        nodes = found.nodes.get(group, ())
        example = self._find_example(nodes, found.gpu_label, now)
        if example is not None:
            template = _build_template(example, found.pods, TemplateSource.REAL_NODE)
            remembered = self._remembered.get(group)
            if remembered is not None and remembered.template == template:
                # The same object lets readers detect that nothing changed.
                template = remembered.template
            self._remembered[group] = _Remembered(template=template, at=now)
            return template
        if group in self._remembered:
            last = self._remembered[group].template
            return GroupTemplate(node=last.node, daemons=last.daemons, source=TemplateSource.REMEMBERED)
        if provided is not None:
            return provided
        return _build_template(min(nodes, key=_get_age_key), found.pods, TemplateSource.ANY_NODE) if nodes else None

    def _find_example(self, nodes: Iterable[Node], gpu_label: str, now: datetime) -> Node | None:
        """The oldest usable node."""
        startup = StartupTaints(self.policy.pods)
        left = list(nodes)
        oldest = min(left, key=_get_age_key, default=None)
        if oldest is None or _is_usable(oldest, startup, gpu_label, now):
            return oldest
        return next(
            (node for node in sorted(left, key=_get_age_key) if _is_usable(node, startup, gpu_label, now)), None
        )

    def _is_remembered(self, group: str, now: datetime) -> bool:
        remembered = self._remembered.get(group)
        return remembered is not None and not self._is_too_old(remembered, now)

    def _forget(self, there: Iterable[str], now: datetime) -> None:
        self._remembered = {
            group: self._remembered[group]
            for group in there
            if group in self._remembered and not self._is_too_old(self._remembered[group], now)
        }

    def _is_too_old(self, remembered: _Remembered, now: datetime) -> bool:
        return add_seconds(remembered.at, self.policy.operation.node_info_cache_s) < now


def group_nodes(nodes: Iterable[Node], group_of: Mapping[str, str]) -> dict[str, list[Node]]:
    found: defaultdict[str, list[Node]] = defaultdict(list)
    for node in nodes:
        group = group_of.get(node.metadata.name)
        if group is not None:
            found[group].append(node)
    return dict(found)


def from_provider(node: Node, pods: Iterable[Pod] = ()) -> GroupTemplate:
    """A template of the provider; `pods` are those on it, such as mirror pods and kube-proxy."""
    return GroupTemplate(node=_without_conditions(node), daemons=tuple(pods), source=TemplateSource.PROVIDER)


def _is_usable(node: Node, startup: StartupTaints, gpu_label: str, now: datetime) -> bool:
    readiness = classify_readiness(node, startup, gpu_label=gpu_label)
    if not readiness.is_ready or node.spec.unschedulable or is_tainted_for_deletion(node):
        return False
    return readiness.since is None or add_seconds(readiness.since, _STABLE_AFTER_S) < now


def _build_template(node: Node, pods: Mapping[str, Collection[Pod]], source: TemplateSource) -> GroupTemplate:
    on_it = pods.get(node.metadata.name, ())
    staying = (pod for pod in on_it if pod.metadata.deletion_timestamp is None)
    daemons = (pod for pod in staying if is_mirror_pod(pod) or is_daemon_pod(pod))
    in_order = sorted(daemons, key=lambda pod: (pod.metadata.namespace, pod.metadata.name))
    return GroupTemplate(node=_without_conditions(node), daemons=tuple(in_order), source=source)


def _without_conditions(node: Node) -> Node:
    remembered = tuple(taint for taint in node.spec.taints if taint.key not in _OF_CONDITIONS)
    return structs.replace(node, spec=structs.replace(node.spec, taints=remembered))


def _get_age_key(node: Node) -> tuple[float, str]:
    """The sort key of age: the oldest node represents its group longest."""
    created = node.metadata.creation_timestamp
    return (float("inf") if created is None else created.timestamp(), node.metadata.name)
