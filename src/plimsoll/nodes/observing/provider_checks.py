"""Checks what the provider lists against what it listed before, and against the nodes of the cluster.

A provider that suddenly misses more than a small share of its groups, of their instances or of the owners of nodes is
not believed while Ready nodes stand for what is missing, or until a second read misses the same. Until then the state
of the last loop fills the gaps, so that scale-up plans with careful numbers, and nothing shrinks.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from plimsoll.kube.informer.reflector.list_verifier import is_small_loss
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.model.taints import BEING_DELETED
from plimsoll.objects.api.nodes import is_node_ready

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from plimsoll.nodes.observing.provider_state import NodeGroupState, ProviderState
    from plimsoll.nodes.providers.values import Instance
    from plimsoll.objects.api.nodes import Node

Key = tuple[str, str]
"""What is listed (`groups`, `instances`, `owners`), and its id."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedProviderState:
    """The state to plan with. `contradiction`: why the lists are not believed; empty if they are."""

    state: ProviderState
    contradiction: str = ""


class ProviderStateChecker:
    """Remembers the last state that was believed."""

    def __init__(self) -> None:
        self._groups: Mapping[str, NodeGroupState] = {}
        self._group_of: dict[str, str] = {}
        self._unconfirmed: frozenset[Key] = frozenset()

    @property
    def nodes_of_groups(self) -> dict[str, frozenset[str]]:
        """The nodes that each group is known to have."""
        found: defaultdict[str, set[str]] = defaultdict(set)
        for node, group in self._group_of.items():
            found[group].add(node)
        return {group: frozenset(nodes) for group, nodes in found.items()}

    def list_known(self) -> set[str]:
        """The ids of the known groups, and the ids and names of their instances."""
        instances = [instance for group in self._groups.values() for instance in group.instances]
        return {*self._groups, *(instance.id for instance in instances), *(instance.name for instance in instances)}

    def check(self, read: ProviderState, nodes: Sequence[Node], *, requested: Collection[str]) -> CheckedProviderState:
        """`requested`: instances and groups whose deletion was requested, by id and by name."""
        names = {node.metadata.name for node in nodes}
        owners = {node: group for node, group in self._group_of.items() if node in names}
        ready = {known for node in nodes if _is_ready(node) for known in (node.spec.provider_id, node.metadata.name)}
        losses = (
            ("groups", self._groups.keys(), self._find_lost_groups(read, requested)),
            ("instances", self._list_instances(), self._find_lost_instances(read, requested)),
            ("owners", owners.keys(), {node for node in owners if node not in read.group_of}),
        )
        large = {what: lost for what, known, lost in losses if not is_small_loss(len(lost), len(known))}
        missing = frozenset((what, lost) for what, all_lost in large.items() for lost in all_lost)
        before, self._unconfirmed = self._unconfirmed, missing
        alive = self._find_alive(missing, ready)
        if not missing or (not alive and before >= missing):
            self._groups = read.groups
            self._group_of = {
                node: group for node, group in {**owners, **read.group_of}.items() if group in read.groups
            }
            return CheckedProviderState(state=read)
        filled = self._fill(read, owners)
        return CheckedProviderState(state=filled, contradiction=_describe(large, alive))

    def _list_instances(self) -> list[str]:
        return [instance.id for group in self._groups.values() for instance in group.instances]

    def _find_lost_groups(self, read: ProviderState, requested: Collection[str]) -> set[str]:
        return {name for name in self._groups if name not in read.groups and name not in requested}

    def _find_lost_instances(self, read: ProviderState, requested: Collection[str]) -> set[str]:
        there = {instance.id for group in read.groups.values() for instance in group.instances}
        return {
            instance.id
            for group in self._groups.values()
            for instance in group.instances
            if instance.id not in there and not _is_expected_to_go(instance, requested)
        }

    def _find_alive(self, missing: Iterable[Key], ready: Collection[str]) -> str:
        """A Ready node of something that is missing; empty if there is none."""
        names = {instance.id: instance.name for group in self._groups.values() for instance in group.instances}
        by_group = self.nodes_of_groups
        for what, lost in sorted(missing):
            if what == "groups":
                nodes: Iterable[str] = sorted(by_group.get(lost, ()))
            else:
                nodes = (names.get(lost, ""), lost)
            found = next((node for node in nodes if node and node in ready), "")
            if found:
                return found
        return ""

    def _fill(self, read: ProviderState, owners: Mapping[str, str]) -> ProviderState:
        """The read state with what it misses of the last one."""
        groups = {name: _with_instances(group, self._groups.get(name)) for name, group in read.groups.items()}
        groups |= {name: group for name, group in self._groups.items() if name not in groups}
        has_instance = dict.fromkeys(read.has_instance, True)
        return replace(
            read,
            groups=dict(sorted(groups.items())),
            group_of={**owners, **read.group_of},
            has_instance=has_instance,
        )


def _with_instances(group: NodeGroupState, known: NodeGroupState | None) -> NodeGroupState:
    if known is None:
        return group
    there = {instance.id for instance in group.instances}
    lost = [instance for instance in known.instances if instance.id not in there]
    return replace(group, instances=(*group.instances, *lost)) if lost else group


def _is_expected_to_go(instance: Instance, requested: Collection[str]) -> bool:
    return instance.state is InstanceState.DELETING or instance.id in requested or instance.name in requested


def _is_ready(node: Node) -> bool:
    if any(taint.key == BEING_DELETED for taint in node.spec.taints):
        return False
    return is_node_ready(node)


def _describe(large: Mapping[str, Collection[str]], alive: str) -> str:
    lost = " and ".join(f"{len(ids)} {what}" for what, ids in large.items())
    evidence = f"although node {alive} is Ready" if alive else "and no second read has yet agreed"
    return f"the provider lists {lost} less than before, {evidence}"
