"""The five levels at one glance: a number each, what happened last, and how to start what does not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, NamedTuple

from plimsoll.console.cluster_map.cells import NodeState, find_node_state
from plimsoll.console.views.costs import choose_points
from plimsoll.console.views.decisions import summarize
from plimsoll.console.views.fleet import FleetView
from plimsoll.console.views.waiting import UNBOUND
from plimsoll.core.formatting import format_count
from plimsoll.core.values import Value
from plimsoll.journal.entries import Query
from plimsoll.kube.errors import ApiCallFailed, NotFound
from plimsoll.nodes.reporting.requests import REQUEST
from plimsoll.objects.api.kafka import Kafka
from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
from plimsoll.objects.api.tidb import TidbClusterAutoScaler
from plimsoll.web.responses import build_json_response

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from starlette.requests import Request
    from starlette.responses import Response

    from plimsoll.console.costs.history import CostHistory
    from plimsoll.console.views.ports import ClusterInformers, DecisionSource
    from plimsoll.core.clock import Clock
    from plimsoll.journal.entries import Entry
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.meta import WireObject


REQUESTS: Final = "requests"
_TREND_POINTS: Final = 60
_ENTRIES_READ: Final = 50


class Level(Value):
    """A level of capacity. `start`: how to start what works at it."""

    name: str
    page: str
    subsystem: str
    noun: str
    start: str


LEVELS: Final = (
    Level(name="Clusters", page="fleet", subsystem="fleet", noun="cluster", start="plimsoll run fleet"),
    Level(name="Nodes", page="nodes", subsystem="nodes", noun="node", start="plimsoll run nodes"),
    Level(
        name="Groups of pods",
        page="waiting",
        subsystem=REQUESTS,
        noun="request",
        start="plimsoll run nodes --enable-provisioning-requests",
    ),
    Level(name="Kafka", page="kafka", subsystem="kafka", noun="Kafka cluster", start="plimsoll run kafka"),
    Level(name="TiDB", page="tidb", subsystem="tidb", noun="autoscaler", start="plimsoll run tidb"),
)


class OverviewSources(NamedTuple):
    """What is known of the fleet and of costs; nothing by default."""

    fleet: FleetView = FleetView()
    costs: CostHistory | None = None


class OverviewView:
    """`/api/overview`. `running`: the subsystems that are known to run."""

    def __init__(
        self,
        source: DecisionSource,
        client: Client,
        *,
        informers: ClusterInformers,
        clock: Clock,
        running: Collection[str] = (),
        others: OverviewSources | None = None,
    ) -> None:
        self._source = source
        self._client = client
        self._nodes, self._pods = informers
        self._clock = clock
        self._running = running
        self._fleet, self._costs = others or OverviewSources()

    async def show_overview(self, _request: Request) -> Response:
        levels = [await self._describe_level(level) for level in LEVELS]
        newest = await self._source.list_entries(Query(limit=10))
        answer = {
            "at": self._clock.now(),
            "levels": levels,
            "newest": [summarize(entry) for entry in newest],
            "cost": self._describe_cost(),
        }
        return build_json_response(answer)

    def _describe_cost(self) -> dict[str, Any] | None:
        """The last sample with its trend; None: there is none yet."""
        samples = [] if self._costs is None else choose_points(list(self._costs.samples), _TREND_POINTS)
        if not samples:
            return None
        cost, bound = samples[-1].cost, samples[-1].bound
        return {
            "perHour": round(cost, 6),
            "boundPerHour": round(bound, 6),
            "ratio": round(cost / bound, 4) if bound > 0 else None,
            "trend": [round(sample.cost, 6) for sample in samples],
        }

    async def _describe_level(self, level: Level) -> dict[str, Any]:
        last = await self._list_last(level)
        count, detail = await self._count(level)
        return {
            "name": level.name,
            "page": level.page,
            "noun": level.noun,
            "count": count,
            "detail": detail,
            "start": "" if level.subsystem in self._running else level.start,
            "last": summarize(last[0]) if last else None,
        }

    async def _list_last(self, level: Level) -> Sequence[Entry]:
        """The newest decision of a level. Requests are decided about by the node autoscaler."""
        if level.subsystem != REQUESTS:
            return await self._source.list_entries(Query(subsystem=level.subsystem, limit=1))
        entries = await self._source.list_entries(Query(subsystem="nodes", limit=_ENTRIES_READ))
        return [entry for entry in entries if any(ref.kind == REQUEST for ref in entry.list_subjects())][:1]

    async def _count(self, level: Level) -> tuple[int | None, str]:
        """The number of objects, and what else to know; None: they cannot be seen."""
        match level.page:
            case "nodes":
                return self._count_nodes()
            case "waiting":
                count, problem = await self._count_objects(ProvisioningRequest)
                unbound = len(self._pods.cache.list_by_index(UNBOUND, True))  # noqa: FBT003 - the value of the index
                return count, problem or f"{format_count(unbound, 'pod')} without a node"
            case "kafka":
                return await self._count_objects(Kafka)
            case "tidb":
                return await self._count_objects(TidbClusterAutoScaler)
            case _:
                return await self._fleet.count_clusters(), ""

    def _count_nodes(self) -> tuple[int, str]:
        nodes = self._nodes.cache.list()
        states = [find_node_state(node) for node in nodes]
        counts = {state: states.count(state) for state in NodeState if state is not NodeState.READY}
        if self._nodes.cache.bad:
            counts[NodeState.UNREADABLE] = len(self._nodes.cache.bad)
        named = ", ".join(f"{count} {state.name.lower()}" for state, count in counts.items() if count)
        return len(nodes) + len(self._nodes.cache.bad), named or "all ready"

    async def _count_objects(self, kind: type[WireObject]) -> tuple[int | None, str]:
        try:
            found = await self._client.list(kind)
        except NotFound:
            return None, "the cluster does not define them"
        except ApiCallFailed as error:
            return None, str(error)
        return len(found.items) + len(found.bad), ""
