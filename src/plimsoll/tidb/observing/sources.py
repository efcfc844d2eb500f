"""Whom a pass asks: the planner, external services, PD, and how many nodes there are. Made once for all passes.

Whoever wires the program gives the network and the planner; a pass gets answers as values. Nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.tidb.external.recommender import ExternalFailed, ExternalQuestion, recommended
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.planner_answer import NoAnswer
from plimsoll.tidb.observing.component_state import is_silent_on_stores
from plimsoll.tidb.observing.node_capacity import node_room
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.pd.members import BaseCluster, pod_of
from plimsoll.tidb.pd.types import UP
from plimsoll.tidb.planner.client import read_answer
from plimsoll.tidb.planning.api.defaults import scaled_component
from plimsoll.tidb.planning.reconcile.node_counts import potential_nodes, ready_nodes
from plimsoll.tidb.wire.strategy import write_strategy
from plimsoll.web.address_guard import parse_exceptions

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.secret_tls import Secrets
    from plimsoll.objects.api.tidb import TidbCluster
    from plimsoll.tidb.external.recommender import Caller
    from plimsoll.tidb.model.scaling_plan import ScalingPlan
    from plimsoll.tidb.model.strategy import Strategy
    from plimsoll.tidb.observing.observer import Nodes, Observed
    from plimsoll.tidb.pd.access import PdAccess
    from plimsoll.tidb.pd.client import Pd
    from plimsoll.tidb.planner.client import Planner
    from plimsoll.tidb.settings import TidbSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

EXTERNAL_FAILED: Final = "ExternalFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Of all clusters."""

    client: Client
    pds: PdAccess
    planner: Planner
    nodes: Nodes
    caller: Caller
    secrets: Secrets
    settings: TidbSettings

    # ---- what should be

    async def plans(self, observed: Observed, strategy: Strategy) -> tuple[ScalingPlan, ...] | NoAnswer:
        base = _base_of(observed)
        answer = await self.planner.ask(base, write_strategy(strategy))
        return read_answer(answer, strategy.component)

    async def external(self, observed: Observed, component: Component) -> int | NoAnswer:
        """What the external service of a component says, whatever `maxReplicas` is."""
        base, scaled = _base_of(observed), scaled_component(observed.autoscaler, component)
        assert scaled is not None
        assert scaled.external is not None
        question = ExternalQuestion(
            endpoint=scaled.external.endpoint,
            home=observed.autoscaler.metadata.namespace,
            namespace=base.metadata.namespace,
            cluster=base.metadata.name,
            component=component,
        )
        exceptions = parse_exceptions(self.settings.external_allow)
        answer = await recommended(question, caller=self.caller, secrets=self.secrets, exceptions=exceptions)
        return NoAnswer(code=EXTERNAL_FAILED, problem=answer.problem) if isinstance(answer, ExternalFailed) else answer

    # ---- what there is

    async def node_count(self) -> int | None:
        """None: nobody knows, and so nobody limits it."""
        nodes = await self.nodes.nodes()
        if nodes is None:
            return None
        if not self.settings.potential_nodes:
            return ready_nodes(nodes)
        return potential_nodes(nodes, await node_room(self.client, namespace=self.settings.home))

    async def registered(self, observed: Observed) -> dict[str, int]:
        """Stores that are Up, by TidbCluster, of those whose status does not tell; nothing, if PD does not either."""
        silent = [raw for raw in (observed.base, *observed.clusters) if raw is not None and is_silent_on_stores(raw)]
        if not silent:
            return {}
        stores = await self.pd(observed).stores()
        if isinstance(stores, PdFailed):
            log.debug("stores.unknown", problem=stores.problem)
            return {}
        if not stores:
            # Not even the cluster's own: it has not come up yet, or this is not its PD.
            return {}
        pods = [pod for store in stores if store.state == UP and (pod := pod_of(store.store.address)) is not None]
        clusters = [_cluster(raw.view) for raw in silent]
        return {
            base_cluster.name: sum(base_cluster.owns(pod, Component.TIKV) for pod in pods) for base_cluster in clusters
        }

    # ---- PD

    def pd(self, observed: Observed) -> Pd:
        return self.pds.of(_base_of(observed))


def _base_of(observed: Observed) -> TidbCluster:
    assert observed.base is not None, "nothing is asked about without a base cluster"
    return observed.base.view


def _cluster(cluster: TidbCluster) -> BaseCluster:
    return BaseCluster(namespace=cluster.metadata.namespace, name=cluster.metadata.name)
