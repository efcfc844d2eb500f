"""The parts of a TiDB autoscaler put together: the same once, live, and in a simulated world.

Who runs it gives a client, a way to ask over HTTP and settings. Nothing here decides.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.journal.last_plans_map import LAST_PLANS_OF_TIDB, LastPlansWriter
from plimsoll.kube.secret_tls import SecretsOfCluster
from plimsoll.tidb.actuation.drainers import DrainerFactory
from plimsoll.tidb.controller import TidbController
from plimsoll.tidb.observing.observer import ListedNodes, WatchedNodes
from plimsoll.tidb.observing.sources import Sources
from plimsoll.tidb.pd.access import PdAccess
from plimsoll.tidb.planner.client import HttpPlanner, OwnPlanner
from plimsoll.tidb.reconciler import ReconcilerDependencies, TidbReconciler
from plimsoll.tidb.reporting.reporter import LastPlans, Teller

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy
    from plimsoll.journal.ports import Journal
    from plimsoll.kube.client import Client
    from plimsoll.kube.informer.factory import SharedInformerFactory
    from plimsoll.kube.recorder import EventRecorder
    from plimsoll.tidb.external.recommender import Caller
    from plimsoll.tidb.planner.client import Planner
    from plimsoll.tidb.reporting.metrics import PassMetrics
    from plimsoll.tidb.settings import TidbSettings
    from plimsoll.web.client import HttpClient


@dataclass(frozen=True, slots=True, kw_only=True)
class Dependencies:
    """What an autoscaler lives in. Without informers nodes are listed when they are wanted.

    `keeps_last_plans`: what was said last of each object is kept in the cluster, for `plimsoll why`.
    """

    client: Client
    web: HttpClient
    caller: Caller
    clock: Clock
    settings: TidbSettings
    informers: SharedInformerFactory | None = None
    recorder: EventRecorder | None = None
    journal: Journal | None = None
    metrics: PassMetrics | None = None
    keeps_last_plans: bool = False


class TidbParts:
    """Made before the informers run."""

    def __init__(self, around: Dependencies) -> None:
        client, settings = around.client, around.settings
        self._around = around
        last_plans = LastPlans(LastPlansWriter(client, LAST_PLANS_OF_TIDB), settings.home)
        self.teller = Teller(
            client,
            recorder=around.recorder,
            journal=around.journal,
            metrics=around.metrics,
            last_plans=last_plans if around.keeps_last_plans else None,
        )
        secrets = SecretsOfCluster(client)
        pds = PdAccess(around.web, secrets, address=settings.pd)
        nodes = ListedNodes(client) if around.informers is None else WatchedNodes(around.informers)
        advisers = Sources(
            client=client,
            pds=pds,
            planner=self._planner(pds),
            nodes=nodes,
            caller=around.caller,
            secrets=secrets,
            settings=settings,
        )
        self.autoscaler = TidbReconciler(
            ReconcilerDependencies(
                client=client,
                clock=around.clock,
                advisers=advisers,
                drainers=DrainerFactory(client=client, pds=pds, settings=settings),
                teller=self.teller,
                settings=settings,
            )
        )

    def controller(self, entropy: Entropy) -> TidbController:
        """Looks at autoscalers by itself; only where there are informers."""
        around = self._around
        assert around.informers is not None
        return TidbController(
            self.autoscaler,
            around.informers,
            clock=around.clock,
            entropy=entropy,
            resync_s=around.settings.resync_s,
        )

    def _planner(self, pds: PdAccess) -> Planner:
        around = self._around
        if around.settings.planner:
            return HttpPlanner(around.settings.planner, web=around.web)
        return OwnPlanner(
            pds,
            web=around.web,
            now=around.clock.now,
            prometheus=around.settings.prometheus,
            falls_back=around.settings.falls_back,
        )
