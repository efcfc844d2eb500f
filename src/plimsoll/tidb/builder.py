"""Builds a TiDB autoscaler from its dependencies: the same for a single run, live, and in simulation.

Nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.journal.last_plans_config_map import LastPlansWriter
from plimsoll.kube.secret_tls import ClusterSecrets
from plimsoll.tidb.actuation.drainers import DrainerFactory
from plimsoll.tidb.controller import TidbController
from plimsoll.tidb.observing.observer import ClientNodeLister, InformerNodeLister
from plimsoll.tidb.observing.sources import Sources
from plimsoll.tidb.pd.access import PdAccess
from plimsoll.tidb.permissions import LAST_PLANS_MAP
from plimsoll.tidb.planner.client import HttpPlanner, InProcessPlanner
from plimsoll.tidb.reconciler import ReconcilerDependencies, TidbReconciler
from plimsoll.tidb.reporting.reporter import LastPlansStore, Reporter

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.tidb.external.recommender import Caller
    from plimsoll.tidb.planner.client import Planner
    from plimsoll.tidb.reporting.metrics import ReconcileMetrics
    from plimsoll.tidb.settings import TidbSettings
    from plimsoll.web.client import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """The dependencies of an autoscaler. Without informers, nodes are listed with a request when needed.

    `keeps_last_plans`: the last plan of each object is kept in the cluster, for `plimsoll why`.
    """

    client: Client
    web: HttpClient
    caller: Caller
    clock: Clock
    settings: TidbSettings
    informers: SharedInformerFactory | None = None
    recorder: EventRecorder | None = None
    journal: Journal | None = None
    metrics: ReconcileMetrics | None = None
    keeps_last_plans: bool = False


class TidbAutoscalerParts:
    """The parts of an autoscaler. Built before the informers run."""

    def __init__(self, dependencies: Dependencies) -> None:
        client, settings = dependencies.client, dependencies.settings
        self._dependencies = dependencies
        last_plans = LastPlansStore(LastPlansWriter(client, LAST_PLANS_MAP), settings.controller_namespace)
        self.reporter = Reporter(
            client,
            recorder=dependencies.recorder,
            journal=dependencies.journal,
            metrics=dependencies.metrics,
            last_plans=last_plans if dependencies.keeps_last_plans else None,
        )
        secrets = ClusterSecrets(client)
        pds = PdAccess(dependencies.web, secrets, guard=client.guard, address=settings.pd)
        nodes = (
            ClientNodeLister(client)
            if dependencies.informers is None
            else InformerNodeLister(dependencies.informers, client)
        )
        sources = Sources(
            client=client,
            pds=pds,
            planner=self._build_planner(pds),
            nodes=nodes,
            caller=dependencies.caller,
            secrets=secrets,
            settings=settings,
        )
        self.reconciler = TidbReconciler(
            ReconcilerDependencies(
                client=client,
                clock=dependencies.clock,
                sources=sources,
                drainers=DrainerFactory(client=client, pds=pds, settings=settings),
                reporter=self.reporter,
                settings=settings,
            )
        )

    def build_controller(self, entropy: Entropy) -> TidbController:
        """The controller that reconciles autoscalers by itself. It needs informers."""
        dependencies = self._dependencies
        assert dependencies.informers is not None
        return TidbController(
            self.reconciler,
            dependencies.informers,
            clock=dependencies.clock,
            entropy=entropy,
            resync_s=dependencies.settings.resync_s,
        )

    def _build_planner(self, pds: PdAccess) -> Planner:
        dependencies = self._dependencies
        if dependencies.settings.planner:
            return HttpPlanner(dependencies.settings.planner, web=dependencies.web)
        return InProcessPlanner(
            pds,
            web=dependencies.web,
            now=dependencies.clock.now,
            prometheus=dependencies.settings.prometheus,
            falls_back=dependencies.settings.falls_back,
        )
