"""Each part of upkeep on its own: what whoever puts a cluster together asks for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.upkeep import (
    disruption_budgets,
    garbage_collection,
    namespace_deletion,
    node_lifecycle,
    pod_collection,
    taint_eviction,
)
from plimsoll.local.upkeep.disruption_budgets import DisruptionBudgets
from plimsoll.local.upkeep.garbage_collection import GarbageCollection
from plimsoll.local.upkeep.namespace_deletion import NamespaceDeletion, NamespaceDeletionSettings
from plimsoll.local.upkeep.node_lifecycle import NodeLifecycle, NodeLifecycleSettings
from plimsoll.local.upkeep.pod_collection import PodCollection, PodCollectionSettings
from plimsoll.local.upkeep.taint_eviction import TaintEviction
from plimsoll.runtime.services import Service

if TYPE_CHECKING:
    from collections.abc import Container

    from plimsoll.kube.controllers import Controller
    from plimsoll.local.components import Components
    from plimsoll.local.liveness import Liveness


def node_lifecycle_services(
    components: Components, liveness: Liveness, settings: NodeLifecycleSettings | None = None
) -> list[Service]:
    """Conditions and taints of silent nodes, and what NoExecute taints do to pods."""
    lifecycle = NodeLifecycle(components.component(node_lifecycle.NAME), liveness, settings or NodeLifecycleSettings())
    eviction = TaintEviction(components.component(taint_eviction.NAME))
    return [_service(lifecycle.controller), _service(eviction.controller)]


def pod_collection_services(components: Components, settings: PodCollectionSettings | None = None) -> list[Service]:
    """Pods of nodes that are no more."""
    part = PodCollection(components.component(pod_collection.NAME), settings or PodCollectionSettings())
    return [_service(part.controller)]


def disruption_services(components: Components) -> list[Service]:
    """The status of disruption budgets."""
    return [_service(DisruptionBudgets(components.component(disruption_budgets.NAME)).controller)]


def garbage_collection_services(
    components: Components, *, spared_owners: Container[str] = frozenset()
) -> list[Service]:
    """Objects go with their owners, but not with those that are spared (by uid)."""
    part = GarbageCollection(components.component(garbage_collection.NAME), spared_owners=spared_owners)
    return [Service(name=garbage_collection.NAME, run=part.run)]


def namespace_deletion_services(
    components: Components, settings: NamespaceDeletionSettings | None = None
) -> list[Service]:
    """Namespaces that are deleted are emptied."""
    part = NamespaceDeletion(components.component(namespace_deletion.NAME), settings or NamespaceDeletionSettings())
    return [_service(part.controller)]


def _service(controller: Controller[Any]) -> Service:
    return Service(name=controller.name, run=controller.run)
