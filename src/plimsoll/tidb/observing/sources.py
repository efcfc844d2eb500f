"""Sources of advice and data for a reconcile: the planner, external services, PD and the number of nodes.

Answers are values. Nothing is decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import structlog

from plimsoll.tidb.external.recommender import RecommendationFailed, RecommendationRequest, request_recommendation
from plimsoll.tidb.model.components import Component
from plimsoll.tidb.model.planner_answer import NoAnswer, PlannerAnswer
from plimsoll.tidb.observing.component_state import lacks_store_status
from plimsoll.tidb.observing.node_capacity import read_node_capacity
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.pd.members import BaseCluster, parse_pod_address
from plimsoll.tidb.pd.types import UP
from plimsoll.tidb.planner.client import read_answer
from plimsoll.tidb.planning.api.defaults import get_scaled_component
from plimsoll.tidb.planning.reconcile.node_counts import count_potential_nodes, count_ready_nodes
from plimsoll.tidb.wire.strategy import write_strategy
from plimsoll.web.address_guard import parse_exceptions

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.secret_tls import SecretReader
    from plimsoll.objects.api.tidb import TidbCluster
    from plimsoll.tidb.external.recommender import Caller
    from plimsoll.tidb.model.strategy import Strategy
    from plimsoll.tidb.observing.observer import NodeLister, Observed
    from plimsoll.tidb.pd.access import PdAccess
    from plimsoll.tidb.pd.client import PdClient
    from plimsoll.tidb.planner.client import Planner
    from plimsoll.tidb.settings import TidbSettings

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

EXTERNAL_FAILED: Final = "ExternalFailed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """The sources for all clusters. Built once."""

    client: Client
    pds: PdAccess
    planner: Planner
    nodes: NodeLister
    caller: Caller
    secrets: SecretReader
    settings: TidbSettings

    # ---- advice

    async def request_plans(self, observed: Observed, strategy: Strategy) -> PlannerAnswer | NoAnswer:
        base = _get_base(observed)
        answer = await self.planner.request_plans(base, write_strategy(strategy))
        return read_answer(answer, strategy.component)

    async def request_recommendation(self, observed: Observed, component: Component) -> int | NoAnswer:
        """The recommendation of a component's external service, not limited by `maxReplicas`."""
        base, scaled = _get_base(observed), get_scaled_component(observed.autoscaler, component)
        assert scaled is not None
        assert scaled.external is not None
        question = RecommendationRequest(
            endpoint=scaled.external.endpoint,
            autoscaler_namespace=observed.autoscaler.metadata.namespace,
            namespace=base.metadata.namespace,
            cluster=base.metadata.name,
            component=component,
        )
        exceptions = parse_exceptions(self.settings.external_allow)
        answer = await request_recommendation(question, caller=self.caller, secrets=self.secrets, exceptions=exceptions)
        return (
            NoAnswer(code=EXTERNAL_FAILED, problem=answer.problem)
            if isinstance(answer, RecommendationFailed)
            else answer
        )

    # ---- data

    async def count_nodes(self) -> int | None:
        """The number of nodes; None: unknown, and so no limit."""
        nodes = await self.nodes.list_nodes()
        if nodes is None:
            return None
        if not self.settings.potential_nodes:
            return count_ready_nodes(nodes)
        return count_potential_nodes(
            nodes, await read_node_capacity(self.client, namespace=self.settings.controller_namespace)
        )

    async def count_registered_stores(self, observed: Observed) -> dict[str, int]:
        """Stores that are Up, by TidbCluster, for clusters whose status lacks them; empty if PD does not answer."""
        without_status = [
            raw for raw in (observed.base, *observed.clusters) if raw is not None and lacks_store_status(raw)
        ]
        if not without_status:
            return {}
        stores = await self.build_pd_client(observed).get_stores()
        if isinstance(stores, PdFailed):
            log.debug("stores.unknown", problem=stores.problem)
            return {}
        if not stores:
            # Not even the stores of the base cluster: it has not started up yet, or this is not its PD.
            return {}
        pods = [
            pod for store in stores if store.state == UP and (pod := parse_pod_address(store.store.address)) is not None
        ]
        clusters = [_build_base_cluster(raw.view) for raw in without_status]
        return {
            base_cluster.name: sum(base_cluster.owns(pod, Component.TIKV) for pod in pods) for base_cluster in clusters
        }

    # ---- PD

    def build_pd_client(self, observed: Observed) -> PdClient:
        return self.pds.build_client(_get_base(observed))


def _get_base(observed: Observed) -> TidbCluster:
    assert observed.base is not None, "sources need a base cluster"
    return observed.base.view


def _build_base_cluster(cluster: TidbCluster) -> BaseCluster:
    return BaseCluster(namespace=cluster.metadata.namespace, name=cluster.metadata.name)
