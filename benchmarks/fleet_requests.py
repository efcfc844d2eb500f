"""Requests to the fleet manager with 10,000 Kafkas: creates, lists and reports of agents, on both databases.

They go to the application in this process, which calls the database in threads as it does when it is served. So the
figures have routing, tokens, checks, transactions and answers, and not the HTTP server.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from plimsoll.fleet.api.application import FleetApi
from plimsoll.fleet.api.errors import BASE_PATH
from plimsoll.fleet.api.ports import ApiPorts, ApiSettings, RateLimit
from plimsoll.fleet.auth.issuer import DEFAULT_AUDIENCE, Issuer, Realm, UserIdentity, build_issuer_url
from plimsoll.fleet.auth.issuer_keys import IssuerKeys
from plimsoll.fleet.auth.key_sets import KeySet
from plimsoll.fleet.auth.verification import TokenVerifier
from plimsoll.fleet.model.statuses import KafkaStatus
from plimsoll.fleet.reporting.metrics import FleetMetrics
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.web.asgi_client import call_application
from plimsoll.web.client import Response

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.workers import Worker
    from plimsoll.fleet.store.database import FleetDatabase

CLIENTS = 8
"""At once; as many as a process has connections to the database."""
CREATES = 500
LISTS = 200
REPORTS = 200
ISSUER_URL = "http://fleet.test/auth"
CONDITION = {"type": "Ready", "status": "True", "reason": "", "message": ""}


class NoSignals:
    """No worker runs here."""

    def notify(self, worker: Worker) -> None:
        """Nothing waits for it."""


class FleetClients:
    """The API on a database, and callers with tokens."""

    def __init__(self, database: FleetDatabase, policy: FleetPolicy, folder: Path) -> None:
        clock, entropy = RealClock(), SystemEntropy()
        keys = IssuerKeys(folder / "keys.json", clock=clock, entropy=entropy)
        issuer = Issuer(keys, base_url=ISSUER_URL, clock=clock, entropy=entropy)
        issuers = {realm: build_issuer_url(ISSUER_URL, realm) for realm in Realm}
        ports = ApiPorts(
            store=database.store,
            journal=database.journal,
            clock=clock,
            entropy=entropy,
            policy=policy,
            verifier=TokenVerifier(KeySet([keys], clock=clock), audience=DEFAULT_AUDIENCE, clock=clock),
            settings=ApiSettings(issuers=issuers, rate=RateLimit(per_second=1e6, burst=10**9)),
            signals=NoSignals(),
            metrics=FleetMetrics(policy),
            issuer=issuer,
        )
        self._application = FleetApi(ports).application
        self._database = database
        self._user = issuer.issue_user_token(UserIdentity(user="alice", organisation="organisation-1"))
        self._issuer = issuer
        self._agents: dict[int, str] = {}
        self._reports: dict[int, bytes] = {}

    async def create(self, number: int) -> None:
        body = json.dumps({"name": f"new-{number}", "plan": "standard.x1", "region": f"region-{number % 25:02}"})
        await self._send("POST", "/kafkas", self._user, query="async=true", body=body.encode(), expected=202)

    async def list_page(self, number: int) -> None:
        """A page of the Kafkas of an organisation, and every other time a search among them."""
        query = "page=1&size=100" + ("&search=name%20like%20'name-1%25'&orderBy=region" if number % 2 else "")
        await self._send("GET", "/kafkas", self._user, query=query)

    async def report(self, number: int) -> None:
        """The status of all Kafkas of a cluster, which differs from the one before by what is stored."""
        cluster = number % len(self._agents)
        path = f"/agent-clusters/cid-{cluster:04}/kafkas/status"
        body = self._reports[cluster].replace(b'"STORED"', str(number).encode())
        await self._send("PUT", path, self._agents[cluster], body=body)

    async def prepare_reports(self, clusters: int) -> None:
        """Tokens of agents and bodies of reports, which are no part of what is measured."""
        for cluster in range(clusters):
            row = await self._database.store.find_cluster(f"cid-{cluster:04}")
            assert row is not None
            self._agents[cluster] = self._issuer.issue_agent_token(row.client_id)
            kafkas = await self._database.store.list_kafkas([KafkaStatus.READY], cluster_id=row.cluster_id)
            report = {"conditions": [CONDITION], "bytesStored": "STORED"}
            self._reports[cluster] = json.dumps({kafka.id: report for kafka in kafkas}).encode()

    async def _send(
        self, method: str, path: str, token: str, *, query: str = "", body: bytes = b"", expected: int = 200
    ) -> None:
        headers = {"authorization": f"Bearer {token}"}
        answer = await call_application(
            self._application, method, f"{BASE_PATH}{path}", query=query, headers=headers, body=body
        )
        assert isinstance(answer, Response), answer
        assert answer.status == expected, answer.body[:300]


def measure_requests(
    database: FleetDatabase, policy: FleetPolicy, name: str, *, clusters: int
) -> Iterator[dict[str, Any]]:
    """Rows of requests per second and of the 99th percentile."""
    with tempfile.TemporaryDirectory() as folder:
        clients = FleetClients(database, policy, Path(folder))
        asyncio.run(clients.prepare_reports(clusters))
        kinds: tuple[tuple[str, Callable[[int], Awaitable[None]], int, str], ...] = (
            ("lists", clients.list_page, LISTS, "100 Kafkas each, half of them found by a search"),
            ("reports of agents", clients.report, REPORTS, "20 Kafkas each, one transaction per Kafka"),
            ("creates", clients.create, CREATES, "each in a transaction under the lock of its region"),
        )
        for kind, send, count, note in kinds:
            used_s = time.process_time()
            durations, seconds = asyncio.run(run_clients(send, count))
            used_s = time.process_time() - used_s
            yield build_row(f"{kind}, {name}", count / seconds, "per second", note=f"{CLIENTS} at once; {note}")
            yield build_row(
                f"{kind}, processor time, {name}", used_s / count * 1_000, "ms each", note="of this process"
            )
            p99 = sorted(durations)[int(0.99 * len(durations))]
            yield build_row(f"{kind}, 99th percentile, {name}", p99 * 1_000, "ms")


async def run_clients(send: Callable[[int], Awaitable[None]], count: int) -> tuple[list[float], float]:
    """The durations of all calls, and the time from the first to the last."""
    numbers = itertools.count()
    durations: list[float] = []

    async def repeat() -> None:
        while (number := next(numbers)) < count:
            began = time.perf_counter()
            await send(number)
            durations.append(time.perf_counter() - began)

    started = time.perf_counter()
    async with asyncio.TaskGroup() as group:
        for _ in range(CLIENTS):
            group.create_task(repeat())
    return durations, time.perf_counter() - started


def build_row(name: str, value: float, unit: str, *, note: str = "") -> dict[str, Any]:
    return {"name": name, "value": value, "unit": unit, "target": "", "met": None, "note": note}
