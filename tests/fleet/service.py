"""A whole fleet manager in virtual time: configuration files, API over HTTP in this process, workers, and one database.

Scenarios see it as a user does: rows come by import, requests go through the API, and answers show the result. The
database is SQLite in memory, or a server at a URL whose calls run in the thread of the loop.
"""

from __future__ import annotations

import asyncio
import copy
import json
import tempfile
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Self, TypeVar

import yaml

from plimsoll.app.fleet.service import ClusterSettings, FleetService, ServiceSettings, TokenSources, World
from plimsoll.fleet.api.errors import BASE_PATH
from plimsoll.fleet.api.ports import RateLimit
from plimsoll.fleet.auth.issuer import UserIdentity
from plimsoll.fleet.auth.issuer_keys import IssuerKeys
from plimsoll.fleet.config.files import FILE_NAMES, FleetFiles, read_configuration
from plimsoll.fleet.config.policy_documents import DYNAMIC_SCALING, NODE_PREWARMING, PROVIDERS
from plimsoll.fleet.model.access import DEFAULT_ADMIN_ROLES
from plimsoll.fleet.model.statuses import KafkaStatus, ScalingType
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.secrets import SecretKeys
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.runtime.supervisor import Supervisor
from plimsoll.runtime.thread_isolation import allow_outside_calls
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response
from tests.fleet.fleet_rows import NOW, make_cluster, make_kafka

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.core.clock import Clock
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.providers.port import ClusterProvider
    from plimsoll.fleet.store.database import FleetDatabase
    from plimsoll.runtime.supervisor import Service
    from plimsoll.web.client import RequestFailed

T = TypeVar("T")
URL = "http://fleet.test"
ALICE = UserIdentity(user="alice", organisation="org-1", account="account-1")
ADMIN = UserIdentity(user="root", roles=(DEFAULT_ADMIN_ROLES["DELETE"][0],))
NO_LIMIT = RateLimit(per_second=1e6, burst=10**9)
KEYS = SecretKeys({"test": b"k" * 32})
MEMORY = "sqlite://"
_POOL = {
    "compute_machine_type": "r5.xlarge",
    "compute_node_autoscaling": {"min_compute_nodes": 3, "max_compute_nodes": 18},
}
MACHINES = {
    "cluster_wide_workload": _POOL,
    "kafka_workload_per_instance_type": {"standard": _POOL, "developer": _POOL},
}


class Answer(NamedTuple):
    status: int
    document: Any

    @property
    def code(self) -> str:
        """The number of the error; empty for an answer that is none."""
        is_error = isinstance(self.document, dict) and self.document.get("kind") == "Error"
        return self.document["id"] if is_error else ""


class _InlineRunner:
    """Calls of a database server in the thread of the loop: virtual time stands still meanwhile."""

    async def run(self, function: Callable[[], T]) -> T:
        with allow_outside_calls():
            return function()

    def close(self) -> None:
        """Nothing waits."""


def open_inline(url: str, clock: Clock) -> FleetDatabase:
    """A database whose calls run in the thread of a virtual loop."""
    with allow_outside_calls():
        return open_database(url, clock=clock, keys=KEYS, runner=None if url == MEMORY else _InlineRunner())


@cache
def make_key_folder() -> Path:
    """Keys are made once: that takes longer than most tests."""
    return Path(tempfile.mkdtemp(prefix="plimsoll-keys-"))


class FleetScenario:
    """A service that is configured and filled first, and then started."""

    def __init__(self, folder: Path, url: str = MEMORY) -> None:
        self._folder = folder
        self.documents: dict[str, Any] = {
            PROVIDERS: {"supported_providers": [{"name": "aws", "default": True, "regions": []}]},
            DYNAMIC_SCALING: {
                "enable_dynamic_data_plane_scale_up": True,
                "enable_dynamic_data_plane_scale_down": True,
                "compute_machine_per_cloud_provider": {"aws": MACHINES},
            },
            NODE_PREWARMING: {},
        }
        self.run = VirtualRun(start=NOW)
        self.clock = self.run.clock
        self.database = open_inline(url, self.clock)
        self.clusters = ClusterSettings()
        self.providers: tuple[ClusterProvider, ...] = ()
        self.further_services: list[Service] = []
        self._running: asyncio.Task[None] | None = None
        self._numbers = iter(range(1, 10**6))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        if self._running is not None:
            self._running.cancel()
            self.run.run_until(asyncio.wait((self._running,)))
        self.run.close()
        with allow_outside_calls():
            self.database.close()

    # ---- configuration

    def offer(self, **types: dict[str, int]) -> FleetScenario:
        """The instance types of aws us-east-1, such as `standard={"limit": 5}`; `slack`: what stays free."""
        named = {"slack": "min_available_capacity_slack_streaming_units"}
        offered = {
            name: {named.get(key, key): value for key, value in settings.items()} for name, settings in types.items()
        }
        region = {"name": "us-east-1", "default": True, "supported_instance_type": offered}
        self.documents[PROVIDERS]["supported_providers"][0]["regions"] = [region]
        return self

    def write_files(self) -> FleetFiles:
        for key, document in self.documents.items():
            (self._folder / FILE_NAMES[key]).write_text(yaml.safe_dump(copy.deepcopy(document)))
        return FleetFiles(scaling_type=ScalingType.AUTO, directory=str(self._folder))

    # ---- rows

    def add_cluster(self, row_id: str, used: int = 0, units: int = 10, **changes: Any) -> Cluster:
        """A ready managed cluster "A used/units", with Kafkas of one unit each."""
        settings = {"cluster_dns": "apps.example.com", "client_id": f"agent-{row_id}", "last_report_at": NOW}
        instance_type = changes.pop("instance_type", "standard")
        cluster = make_cluster(row_id, {instance_type: units}, **(settings | changes))
        kafkas = [
            make_kafka(
                f"{row_id}-{number}",
                cluster_id=cluster.cluster_id,
                status=KafkaStatus.READY,
                bootstrap_server_host="host",
                instance_type=instance_type,
            )
            for number in range(used)
        ]
        self.run.run_until(self.database.transfer.import_rows((cluster,), kafkas, merge=True))
        return cluster

    # ---- the service

    def build_service(self, holder: str = "process-1") -> FleetService:
        """A process of the service, with the configuration as it is now."""
        entropy = SeededEntropy("fleet service")
        keys = IssuerKeys(make_key_folder() / "keys.json", clock=self.clock, entropy=entropy)
        self.service = FleetService(
            read_configuration(self.write_files()),
            self.database,
            ServiceSettings(holder=holder, public_url=URL, rate=NO_LIMIT, clusters=self.clusters),
            tokens=TokenSources(issuer_keys=keys),
            world=World(clock=self.clock, entropy=entropy, lease_clock=self.clock),
            providers=self.providers,
        )
        return self.service

    def start(self) -> FleetScenario:
        services = [*self.further_services, *self.build_service().list_services()]

        async def begin() -> asyncio.Task[None]:
            supervisor = Supervisor(services, clock=self.clock, entropy=SeededEntropy("supervisor"))
            return asyncio.create_task(supervisor.run())

        self._running = self.run.run_until(begin())
        self.pass_by(1)
        return self

    def pass_by(self, seconds: float) -> FleetScenario:
        self.run.run_until(self.clock.sleep(seconds))
        return self

    def run_passes(self, number: int) -> FleetScenario:
        """So many further ticks."""
        return self.pass_by(30 * number)

    # ---- requests

    def call(self, method: str, path: str, body: Any = None, *, query: str = "", token: str = "") -> Answer:
        content = b"" if body is None else json.dumps(body).encode()
        headers = {"authorization": f"Bearer {token or self.get_user_token()}"}
        answer = self.exchange(method, f"{BASE_PATH}{path}", query=query, headers=headers, body=content)
        assert isinstance(answer, Response), answer
        return Answer(answer.status, json.loads(answer.body) if answer.body else None)

    def exchange(self, method: str, path: str, **parts: Any) -> Response | RequestFailed:
        return self.run.run_until(call_application(self.service.application, method, path, **parts))

    def call_admin(self, method: str, path: str, body: Any = None, *, query: str = "") -> Answer:
        assert self.service.issuer is not None
        return self.call(method, path, body, query=query, token=self.service.issuer.issue_admin_token(ADMIN))

    def get_user_token(self, identity: UserIdentity = ALICE) -> str:
        assert self.service.issuer is not None
        return self.service.issuer.issue_user_token(identity)

    def create_kafka(self, name: str, plan: str = "standard.x1") -> Answer:
        return self.call("POST", "/kafkas", {"name": name, "plan": plan}, query="async=true")

    def list_clusters(self, status: str = "") -> list[dict[str, Any]]:
        answer = self.call_admin("GET", "/admin/clusters")
        assert answer.status == 200, answer
        return [item for item in answer.document["items"] if not status or item["status"] == status]

    def list_created(self) -> list[dict[str, Any]]:
        """The clusters that the service registered: they have no provider's id yet."""
        return [item for item in self.list_clusters("cluster_accepted") if not item.get("cluster_id")]

    def list_decisions(self, subject: str) -> list[dict[str, Any]]:
        answer = self.call_admin("GET", "/admin/scaling/decisions", query=f"subject={subject}")
        assert answer.status == 200, answer
        items: list[dict[str, Any]] = answer.document["items"]
        return items


@contextmanager
def open_scenario(folder: Path, url: str = MEMORY) -> Iterator[FleetScenario]:
    with FleetScenario(folder, url) as scenario:
        yield scenario
