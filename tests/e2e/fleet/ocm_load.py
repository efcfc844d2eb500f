"""A simulated OCM on a socket with agents that report, and users whose Kafkas come and go, for processes under test.

It watches what no process may do: a cluster without a row, two clusters for one row, a cluster that is deleted while a
Kafka is on it.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
import threading
import time
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self
from urllib.parse import urlsplit, urlunsplit

import aiohttp
from msgspec import structs

from plimsoll.local.ocm.service import SimulatedOcm
from plimsoll.local.ocm.settings import OcmDelays, OcmSettings
from plimsoll.local.ocm.simulated_agents import AgentSettings, SimulatedAgents
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SeededEntropy
from plimsoll.web.client import AiohttpClient, RequestFailed
from plimsoll.web.serving import serve
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    import psycopg

    from plimsoll.web.client import Request, Response
    from tests.e2e.fleet.fleet_processes import FleetProcesses

_KAFKAS: Final = "/api/kafkas_mgmt/v1/kafkas"
_DELAYS: Final = OcmDelays(pending_s=0.1, installing_s=0.3, addon_s=0.1, uninstalling_s=0.3)
_WAVE_S: Final = 8.0
"""How long users create, and then how long they delete."""
_CONSUMING: Final = (
    "SELECT count(*) FROM kafka_requests WHERE cluster_id = %s AND deleted_at IS NULL AND status <> 'deleting'"
)


class _AnyProcess:
    """The client of the agents: their control plane is whichever process runs."""

    def __init__(self, web: AiohttpClient, list_urls: Callable[[], list[str]], chance: random.Random) -> None:
        self._web = web
        self._list_urls = list_urls
        self._chance = chance

    async def send(self, request: Request) -> Response | RequestFailed:
        urls = self._list_urls()
        if not urls:
            return RequestFailed(problem="no process runs")
        base, wanted = urlsplit(self._chance.choice(urls)), urlsplit(request.url)
        url = urlunsplit((base.scheme, base.netloc, wanted.path, wanted.query, ""))
        return await self._web.send(structs.replace(request, url=url))


class _WatchedAgents(SimulatedAgents):
    """Agents that notice when a cluster goes although a Kafka is on it."""

    def watch(self, connection: psycopg.Connection[Any], problems: list[str]) -> None:
        self._connection, self._problems = connection, problems

    async def delete(self, cluster_id: str) -> None:
        row = await asyncio.to_thread(lambda: self._connection.execute(_CONSUMING, (cluster_id,)).fetchone())
        if row and row[0]:
            self._problems.append(f"cluster {cluster_id} was deleted with {row[0]} Kafkas on it")
        await super().delete(cluster_id)


class OcmLoad:
    """Runs in a thread of its own for as long as the block lasts. `problems`: what no process may do."""

    def __init__(self, connection: psycopg.Connection[Any], seed: int = 1) -> None:
        self.address = f"127.0.0.1:{lasting_port()}"
        self._connection = connection
        self._chance = random.Random(seed)
        self._numbers = itertools.count(1)
        self._is_over = threading.Event()
        self._is_resting = False
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._processes: FleetProcesses | None = None
        self._mine: dict[str, list[str]] = {}
        self.problems: list[str] = []
        self.problem: BaseException | None = None
        self.accepted = self.deleted = self.checks = self.most_clusters = 0
        self.ocm: SimulatedOcm | None = None

    def attach(self, processes: FleetProcesses) -> None:
        self._processes = processes
        self._mine = {token: [] for token in processes.tokens[:4]}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._is_over.set()
        self._thread.join()
        if self.problem is not None:
            raise self.problem

    def get_created(self) -> dict[str, int]:
        """How often a cluster of each name was made."""
        assert self.ocm is not None
        return dict(self.ocm.clusters.created)

    # ---- in the thread

    def _run(self) -> None:
        try:
            asyncio.run(self._play())
        except BaseException as error:  # noqa: BLE001 -- the test raises it
            self.problem = error

    async def _play(self) -> None:
        clock, processes = RealClock(), self._processes
        assert processes is not None
        timeout = aiohttp.ClientTimeout(total=5)
        async with AiohttpClient() as web, aiohttp.ClientSession(timeout=timeout) as session:
            settings = AgentSettings(period_s=0.5, kafka_ready_s=0.1)
            agents = _WatchedAgents(
                web=_AnyProcess(web, processes.list_urls, self._chance), clock=clock, settings=settings
            )
            agents.watch(self._connection, self.problems)
            self.ocm = SimulatedOcm(
                clock=clock,
                entropy=SeededEntropy("simulated OCM"),
                data_plane=agents,
                settings=OcmSettings(delays=_DELAYS, has_unique_names=False),
            )
            running = [
                asyncio.create_task(work)
                for work in (self.ocm.run(), agents.run(), serve(self.ocm.application, self.address))
            ]
            users = [
                asyncio.create_task(self._repeat(partial(self._use, session, token), 0.15)) for token in self._mine
            ]
            await self._repeat(self._check, 0.1)
            for task in (*users, *running):
                task.cancel()
            await asyncio.wait((*users, *running))

    async def _repeat(self, work: Callable[[], Coroutine[Any, Any, None]], pause_s: float) -> None:
        while not self._is_over.is_set():
            await work()
            await asyncio.sleep(self._chance.uniform(0, 2 * pause_s))

    async def _use(self, session: aiohttp.ClientSession, token: str) -> None:
        """Creates for a while, and then deletes: capacity is needed, and is not."""
        assert self._processes is not None
        urls, mine = self._processes.list_urls(), self._mine[token]
        is_creating = int(time.monotonic() / _WAVE_S) % 2 == 0
        if self._is_resting or not urls or not (is_creating or mine):
            return
        url, headers = f"{self._chance.choice(urls)}{_KAFKAS}", {"authorization": f"Bearer {token}"}
        with suppress(aiohttp.ClientError, TimeoutError):
            if is_creating:
                body = {"name": f"kafka-{next(self._numbers)}", "plan": "standard.x1"}
                async with session.post(f"{url}?async=true", json=body, headers=headers) as answer:
                    if answer.status == 202:
                        mine.append(json.loads(await answer.text())["id"])
                        self.accepted += 1
                return
            async with session.delete(f"{url}/{mine[-1]}?async=true", headers=headers) as answer:
                if answer.status in {202, 404}:
                    mine.pop()
                    self.deleted += 1

    async def _check(self) -> None:
        """Every cluster that OCM has belongs to a row that was live a moment ago."""
        assert self.ocm is not None
        provided = [cluster.spec.name for cluster in self.ocm.clusters.list_clusters()]
        rows = await asyncio.to_thread(self._list_names)
        self.problems += [f"cluster {name} has no row" for name in provided if name not in rows]
        twice = {name for name in provided if provided.count(name) > 1}
        self.problems += [f"cluster {name} exists twice" for name in twice]
        self.most_clusters = max(self.most_clusters, len(provided))
        self.checks += 1

    def _list_names(self) -> set[str]:
        """The names of the clusters of rows that were live during the last five seconds."""
        found = self._connection.execute(
            "SELECT id FROM clusters WHERE deleted_at IS NULL OR deleted_at > now() - interval '5 seconds'"
        ).fetchall()
        return {f"mk-{row[0]}"[:15] for row in found}

    # ---- at the end

    def wait_until_settled(self) -> None:
        """The users rest. Until OCM and the rows agree, and nothing is on its way."""
        assert self.ocm is not None
        self._is_resting = True
        deadline = time.monotonic() + PATIENCE_S
        while True:
            rows = self._connection.execute(
                "SELECT status, cluster_id FROM clusters WHERE deleted_at IS NULL"
            ).fetchall()
            ids = {cluster.id for cluster in self.ocm.clusters.list_clusters()}
            if {row[0] for row in rows} <= {"ready"} and {row[1] for row in rows} == ids and len(rows) == len(ids):
                return
            assert time.monotonic() < deadline, (rows, ids)
            time.sleep(0.1)
