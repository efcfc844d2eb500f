"""The services of the controller manager, one function per controller."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.controller_manager import pod_gc
from plimsoll.local.controller_manager.disruption import controller as disruption_budgets
from plimsoll.local.controller_manager.disruption.controller import DisruptionController
from plimsoll.local.controller_manager.garbage_collector import controller as garbage_collection
from plimsoll.local.controller_manager.garbage_collector.controller import GarbageCollector
from plimsoll.local.controller_manager.namespaces import controller as namespace_deletion
from plimsoll.local.controller_manager.namespaces.controller import NamespaceController, NamespaceControllerSettings
from plimsoll.local.controller_manager.node_lifecycle import controller as node_lifecycle
from plimsoll.local.controller_manager.node_lifecycle import taint_eviction
from plimsoll.local.controller_manager.node_lifecycle.controller import NodeLifecycleController, NodeLifecycleSettings
from plimsoll.local.controller_manager.node_lifecycle.taint_eviction import TaintEvictionController
from plimsoll.local.controller_manager.pod_gc import PodGarbageCollector, PodGcSettings
from plimsoll.runtime.supervisor import Service

if TYPE_CHECKING:
    from collections.abc import Container

    from plimsoll.kube.controller.controller import Controller
    from plimsoll.local.components import Components
    from plimsoll.local.liveness import Liveness


def build_node_lifecycle_services(
    components: Components, liveness: Liveness, settings: NodeLifecycleSettings | None = None
) -> list[Service]:
    """Conditions and taints of silent nodes, and what NoExecute taints do to pods."""
    lifecycle = NodeLifecycleController(
        components.build_component(node_lifecycle.NAME), liveness, settings or NodeLifecycleSettings()
    )
    eviction = TaintEvictionController(components.build_component(taint_eviction.NAME))
    return [_build_service(lifecycle.controller), _build_service(eviction.controller)]


def build_pod_gc_services(components: Components, settings: PodGcSettings | None = None) -> list[Service]:
    """Pods of nodes that no longer exist."""
    part = PodGarbageCollector(components.build_component(pod_gc.NAME), settings or PodGcSettings())
    return [_build_service(part.controller)]


def build_disruption_services(components: Components) -> list[Service]:
    """The status of disruption budgets."""
    return [_build_service(DisruptionController(components.build_component(disruption_budgets.NAME)).controller)]


def build_garbage_collector_services(
    components: Components, *, spared_owners: Container[str] = frozenset()
) -> list[Service]:
    """Objects go with their owners, but not with those that are spared (by uid)."""
    part = GarbageCollector(components.build_component(garbage_collection.NAME), spared_owners=spared_owners)
    return [Service(name=garbage_collection.NAME, run=part.run)]


def build_namespace_services(
    components: Components, settings: NamespaceControllerSettings | None = None
) -> list[Service]:
    """Namespaces that are deleted are emptied."""
    part = NamespaceController(
        components.build_component(namespace_deletion.NAME), settings or NamespaceControllerSettings()
    )
    return [_build_service(part.controller)]


def _build_service(controller: Controller[Any]) -> Service:
    return Service(name=controller.name, run=controller.run)
