"""The world of a scenario with a fleet: a fleet manager, a simulated OCM and the clusters it makes, in virtual time.

All of it is what `plimsoll up` runs. Only the stores are memory, plans are made in the loop's thread, and requests of
users go to the API without a socket.
"""

from __future__ import annotations

import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Self, TypeVar

import msgspec

from plimsoll.app.fleet.addons import KAFKA_OPERATOR_ADDON, KafkaOperatorAddon
from plimsoll.app.fleet.cluster_stores import MemoryStores
from plimsoll.app.fleet.embedded_clusters import EmbeddedClustersSettings
from plimsoll.app.fleet.embedded_fleet import EmbeddedFleet, EmbeddedFleetDependencies, EmbeddedFleetSettings
from plimsoll.app.fleet.service import ServiceSettings, TokenSources
from plimsoll.app.fleet.service import World as ServiceWorld
from plimsoll.fleet.api.errors import BASE_PATH
from plimsoll.fleet.api.ports import RateLimit
from plimsoll.fleet.auth.issuer import UserIdentity
from plimsoll.fleet.auth.issuer_keys import KEYS_FILE, IssuerKeys
from plimsoll.fleet.config.files import Configuration
from plimsoll.fleet.model.access import DEFAULT_ADMIN_ROLES, AccessPolicy
from plimsoll.fleet.model.provided import name_cluster
from plimsoll.fleet.store.database import open_database
from plimsoll.local.ocm.state import encode_state
from plimsoll.nodes.plan_runner import run_inline
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.simulation.fleet_worlds.existing_clusters import build_existing_clusters
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from plimsoll.app.fleet.embedded_clusters import RunningCluster
    from plimsoll.local.ocm.state import OcmCluster
    from plimsoll.simulation.scenario import FleetEntry, RequestStep, Scenario

T = TypeVar("T")
URL: Final = "http://fleet"
_NO_LIMIT: Final = RateLimit(per_second=1e6, burst=10**9)
_ADMIN: Final = UserIdentity(user="admin", roles=(DEFAULT_ADMIN_ROLES["DELETE"][0],))


class FleetWorld:
    """`with FleetWorld(scenario, fleet) as world:`; then `world.run` advances time."""

    def __init__(self, scenario: Scenario, fleet: FleetEntry) -> None:
        self.scenario = scenario
        self.run = VirtualRun(start=scenario.start)
        self._entry = fleet
        self._entropy = SeededEntropy(scenario.seed)
        self._stack = ExitStack()
        self._has_started = False
        self.database = open_database("sqlite://", clock=self.run.clock)
        self.fleet = self._build_fleet()

    def _build_fleet(self) -> EmbeddedFleet:
        entry, clock = self._entry, self.run.clock
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="plimsoll-scenario-")))
        ocm_file = folder / "ocm.json"
        existing = build_existing_clusters(entry.clusters, entry.policy, start=self.scenario.start)
        self._first_names = [cluster.spec.name for cluster in existing]
        ocm_file.write_bytes(encode_state(existing))
        keys = IssuerKeys(folder / KEYS_FILE, clock=clock, entropy=self._entropy.spawn_child("keys"))
        stores = MemoryStores(clock=clock, entropy=self._entropy.spawn_child("stores"))
        return EmbeddedFleet(
            Configuration(policy=entry.policy, access=AccessPolicy()),
            EmbeddedFleetSettings(
                service=ServiceSettings(holder="scenario", public_url=URL, period_s=entry.period_s, rate=_NO_LIMIT),
                ocm=entry.ocm,
                ocm_file=ocm_file,
                agents=entry.agents,
                clusters=EmbeddedClustersSettings(machine_boot_s=entry.machine_boot_s),
            ),
            EmbeddedFleetDependencies(
                database=self.database,
                tokens=TokenSources(issuer_keys=keys),
                world=ServiceWorld(clock=clock, entropy=self._entropy.spawn_child("fleet"), lease_clock=clock),
                stores=stores if entry.has_clusters else None,
                addons={KAFKA_OPERATOR_ADDON: KafkaOperatorAddon()},
                run_planner=run_inline,
            ),
        )

    def __enter__(self) -> Self:
        return self

    def start(self) -> None:
        """Import the rows, and run everything. Does nothing the second time."""
        if self._has_started:
            return
        self._has_started = True
        entry = self._entry
        self.run_now(self.database.transfer.import_rows(entry.clusters, entry.kafkas, merge=True))
        entropy = self._entropy.spawn_child("supervisor")
        supervisor = Supervisor(self.fleet.list_services(), clock=self.run.clock, entropy=entropy)
        self.run.spawn(supervisor.run(), name="fleet")
        self.run.settle()

    def __exit__(self, *error: object) -> None:
        self.run.close(after_error=error[0] is not None)
        self.database.close()
        self._stack.close()

    def run_now(self, doing: Coroutine[Any, Any, T]) -> T:
        """Runs something that takes no virtual time, from outside the world."""
        return self.run.run_until(doing)

    # ---- clusters

    def list_names(self) -> dict[str, str]:
        """The names in steps and outcomes by the names at the OCM: `c1` is the first that it ever had."""
        names = dict.fromkeys((*self._first_names, *self.fleet.ocm.clusters.created))
        return {name: f"c{number}" for number, name in enumerate(names, start=1)}

    def list_provided(self) -> dict[str, OcmCluster]:
        """The clusters that the OCM has, by their names in steps."""
        names = self.list_names()
        return {names[cluster.spec.name]: cluster for cluster in self.fleet.ocm.clusters.list_clusters()}

    def name_row(self, row_id: str) -> str:
        """The name in steps of a row's cluster; empty: the OCM never made one."""
        return self.list_names().get(name_cluster(row_id), "")

    def find_running(self, name: str) -> RunningCluster | None:
        provided = self.list_provided().get(name)
        if provided is None or self.fleet.clusters is None:
            return None
        return self.fleet.clusters.find(provided.id)

    # ---- the API

    async def ask(self, step: RequestStep, path: str) -> tuple[int, Any]:
        """The status and the document of an answer."""
        issuer = self.fleet.service.issuer
        assert issuer is not None, "the scenario has its own issuer"
        identity = UserIdentity(user=step.user, organisation=step.organisation)
        token = issuer.issue_admin_token(_ADMIN) if step.is_admin else issuer.issue_user_token(identity)
        answer = await call_application(
            self.fleet.service.application,
            step.method,
            f"{BASE_PATH}{path}",
            query=step.query,
            headers={"authorization": f"Bearer {token}"},
            body=b"" if step.body is None else msgspec.json.encode(step.body),
        )
        assert isinstance(answer, Response), answer
        return answer.status, msgspec.json.decode(answer.body) if answer.body else None
