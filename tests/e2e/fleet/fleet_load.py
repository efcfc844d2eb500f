"""Users, agents and a provider of a fleet under test: they keep its workers busy.

Users create Kafkas by HTTP at any process that runs. The provider makes registered clusters ready and removes marked
ones. The agents run what is provisioned, and delete it again.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import threading
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Final, Self

import aiohttp

from plimsoll.core.errors import PlimsollError
from plimsoll.fleet.model.clusters import DynamicCapacity, StrimziVersion, VersionItem
from plimsoll.fleet.model.statuses import ClusterStatus, KafkaStatus
from plimsoll.fleet.store.database import open_database
from plimsoll.fleet.store.secrets import SecretKeys
from plimsoll.runtime.clocks import RealClock

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine
    from typing import Any

    from plimsoll.fleet.ports import FleetStore
    from tests.e2e.fleet.fleet_processes import FleetProcesses

_PATH: Final = "/api/kafkas_mgmt/v1/kafkas?async=true"
_UNITS: Final = 4
_VERSIONS: Final = (
    StrimziVersion(
        version="strimzi-cluster-operator.v0.23.0-0",
        ready=True,
        kafkaVersions=(VersionItem(version="2.7.0"),),
        kafkaIBPVersions=(VersionItem(version="2.7"),),
    ),
)


class FleetLoad:
    """Runs in a thread of its own for as long as the block lasts. `accepted`: ids of answers 202."""

    def __init__(self, processes: FleetProcesses, url: str, seed: int = 1) -> None:
        self._processes = processes
        self._url = url
        self._chance = random.Random(seed)
        self._is_over = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._numbers = itertools.count(1)
        self.accepted: list[str] = []
        self.refused: dict[str, int] = {}
        self.problem: BaseException | None = None

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self.problem is not None:
            raise self.problem

    def _run(self) -> None:
        try:
            asyncio.run(self._play())
        except BaseException as error:  # noqa: BLE001 -- the test raises it
            self.problem = error

    async def _play(self) -> None:
        database = open_database(self._url, clock=RealClock(), keys=SecretKeys({"load": b"l" * 32}))
        try:
            async with (
                aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=5)) as session,
                asyncio.TaskGroup() as group,
            ):
                for token in self._processes.tokens:
                    group.create_task(self._repeat(partial(self._create, session, token), 0.05))
                group.create_task(self._repeat(lambda: self._provide(database.store), 0.05))
                group.create_task(self._repeat(lambda: self._run_agents(database.store), 0.05))
        finally:
            database.close()

    async def _repeat(self, work: Callable[[], Coroutine[Any, Any, None]], pause_s: float) -> None:
        while not self._is_over.is_set():
            with suppress(PlimsollError):
                await work()
            await asyncio.sleep(self._chance.uniform(0, 2 * pause_s))

    async def _create(self, session: aiohttp.ClientSession, token: str) -> None:
        urls = self._processes.list_urls()
        if not urls:
            return
        body = {"name": f"kafka-{next(self._numbers)}", "plan": self._chance.choice(("standard.x1", "standard.x2"))}
        headers = {"authorization": f"Bearer {token}"}
        try:
            async with session.post(f"{self._chance.choice(urls)}{_PATH}", json=body, headers=headers) as answer:
                text = await answer.text()
        except (aiohttp.ClientError, TimeoutError):
            return
        if answer.status == 202:
            self.accepted.append(json.loads(text)["id"])
        else:
            code = f"{answer.status}/{json.loads(text).get('id', '')}"
            self.refused[code] = self.refused.get(code, 0) + 1

    async def _provide(self, store: FleetStore) -> None:
        for cluster in await store.list_clusters({ClusterStatus.ACCEPTED}):
            await store.change_cluster(
                cluster.id,
                {
                    "status": ClusterStatus.READY,
                    "cluster_id": f"cid-{cluster.id}",
                    "cluster_dns": "apps.example.com",
                    "dynamic_capacity_info": {"standard": DynamicCapacity(max_nodes=12, max_units=_UNITS)},
                    "available_strimzi_versions": _VERSIONS,
                },
                statuses={ClusterStatus.ACCEPTED},
            )
        for cluster in await store.list_clusters({ClusterStatus.DEPROVISIONING}):
            if await store.request_deletion(cluster.id) is None:
                await store.restore_cluster(cluster.id)
            else:
                await store.remove_cluster(cluster.id, statuses={ClusterStatus.DEPROVISIONING})

    async def _run_agents(self, store: FleetStore) -> None:
        for kafka in await store.list_kafkas({KafkaStatus.PROVISIONING}):
            if self._chance.random() < 0.5:
                await store.change_kafka(
                    kafka.id, {"status": KafkaStatus.DELETING}, statuses={KafkaStatus.PROVISIONING}
                )
