"""Rounds of load on a real `plimsoll apiserver` that end with a signal, each on what the one before it left.

The moment of the signal is a count of acknowledged writes drawn from a seed; what the other writers' requests and the
watchers' streams were at just then is up to the machine.
"""

from __future__ import annotations

import asyncio
import random
import signal
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING, NamedTuple

from tests.e2e.apiserver.processes import running
from tests.e2e.apiserver_crash.acknowledged_writes import KINDS, NAMESPACE, Intent, Key, WriteLedger
from tests.e2e.apiserver_crash.connections import ConnectionSettings
from tests.e2e.apiserver_crash.watchers import Watcher
from tests.e2e.apiserver_crash.writers import Writer
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

    from tests.e2e.apiserver.processes import ApiServer
    from tests.e2e.apiserver.raw_clients import Client
    from tests.e2e.apiserver_crash.acknowledged_writes import Json

WRITERS = 6
KEYS_A_KIND = 2
ACKNOWLEDGED = (40, 80)
"""Writes of a round, at least and at most."""
CERTIFICATE = "kube-root-ca.crt"


class CrashStatistics(NamedTuple):
    rounds: int
    acknowledged: int
    kept_unanswered: int
    """Writes that took place though the server was gone before it answered."""
    lost_unanswered: int
    resumptions: int


def rounds_of_load(directory: Path, *, seed: int, ends: Sequence[signal.Signals]) -> CrashStatistics:
    chance = random.Random(seed)
    place = ("--port", str(lasting_port(chance)))
    story = CrashRounds(chance)
    for end in ends:
        durability = chance.choice(["process", "power"])
        with running(directory, *place, "--durability", durability) as server:
            asyncio.run(story.round(server, end))
            check_end(server, end)
    with running(directory, *place) as server:
        asyncio.run(story.check_only(server))
    return story.figures(len(ends))


def check_end(server: ApiServer, end: signal.Signals) -> None:
    code = server.process.wait(timeout=PATIENCE_S)
    assert server.process.stderr is not None
    stated = server.process.stderr.read()
    assert (code, stated) == ((0, "stopped\n") if end is signal.SIGTERM else (-end, ""))


class CrashRounds:
    """Everything that outlives the server's processes."""

    def __init__(self, chance: random.Random) -> None:
        self._chance = chance
        self._session: ConnectionSettings | None = None
        self._ledger = WriteLedger()
        self._writers = [Writer(f"w{number}", keys_of(f"w{number}"), self._ledger) for number in range(WRITERS)]
        self._marker = Writer("marker", [Key(resource, "marker") for resource in KINDS], self._ledger)
        self._markers = 0
        self._watchers = [
            Watcher("configmaps"),
            Watcher("secrets", everywhere=True),
            Watcher("configmaps", everywhere=True),
            Watcher("configmaps", only_even=True),
            Watcher("secrets", everywhere=True, only_even=True),
        ]

    async def round(self, server: ApiServer, end: signal.Signals) -> None:
        async with asyncio.timeout(PATIENCE_S), AsyncExitStack() as connections:
            session = await self._resumed(server, connections)
            ended_properly = await self._load(session, connections, end_now=lambda: server.process.send_signal(end))
            if end is signal.SIGTERM:
                assert all(ended_properly), "a clean stop cut a watch off"

    async def check_only(self, server: ApiServer) -> None:
        async with asyncio.timeout(PATIENCE_S), AsyncExitStack() as connections:
            await self._resumed(server, connections)

    def figures(self, rounds: int) -> CrashStatistics:
        ledger = self._ledger
        resumptions = sum(watcher.resumptions for watcher in self._watchers)
        return CrashStatistics(rounds, ledger.acknowledged, ledger.kept_unanswered, ledger.lost_unanswered, resumptions)

    # ---- after the start

    async def _resumed(self, server: ApiServer, connections: AsyncExitStack) -> ConnectionSettings:
        """Check what is there, then let the watchers catch up, and check what they received."""
        if self._session is None:
            self._session = ConnectionSettings.of(server)
            await self._prepare(self._session, connections)
        session = self._session
        client = await connected(session, connections)
        await self._check_state(session, client)
        until = await self._mark(session, client)
        for watcher in self._watchers:
            connections.push_async_callback(watcher.hang_up)
            await watcher.resume(session)
        for watcher in self._watchers:
            await watcher.catch_up(until[watcher.resource])
        self._check_reported()
        return session

    async def _prepare(self, session: ConnectionSettings, connections: AsyncExitStack) -> None:
        client = await connected(session, connections)
        body = f'{{"apiVersion":"v1","kind":"Namespace","metadata":{{"name":"{NAMESPACE}"}}}}'
        created = await client.ask(session.head("POST", "/api/v1/namespaces"), body.encode())
        assert created.status == 201, created
        certificate = None
        while certificate is None:  # the server puts it into every new namespace, soon after
            certificate = await session.get(client, f"/api/v1/namespaces/{NAMESPACE}/configmaps/{CERTIFICATE}")
        self._ledger.newest = int(certificate["metadata"]["resourceVersion"])
        for watcher in self._watchers:
            watcher.seen = self._ledger.newest

    async def _check_state(self, session: ConnectionSettings, client: Client) -> None:
        keys = [key for writer in (*self._writers, self._marker) for key in writer.keys]
        found = {key: await session.get(client, key.path) for key in keys}
        self._ledger.settle(found)
        for resource, kind in KINDS.items():
            listed = await session.get(client, Key(resource, "").collection)
            ours = [item for item in listed["items"] if item["metadata"]["name"] != CERTIFICATE]
            assert [{**item, "kind": kind, "apiVersion": "v1"} for item in ours] == in_order(found, resource)
            self._ledger.go_on_from(int(listed["metadata"]["resourceVersion"]))
        seen = max(watcher.seen for watcher in self._watchers)
        assert seen <= self._ledger.newest, "a watcher had seen what was not durable"

    async def _mark(self, session: ConnectionSettings, client: Client) -> dict[str, int]:
        """One more write a resource, which all watchers see: one that received it received all before it."""
        self._markers += 1
        until = {}
        for key in self._marker.keys:
            verb = "update" if self._ledger.objects.get(key) else "create"
            await self._marker.write(session, client, Intent(key, verb, 2 * self._markers))
            written = self._ledger.objects[key]
            assert written is not None
            until[key.resource] = int(written["metadata"]["resourceVersion"])
        return until

    def _check_reported(self) -> None:
        history = self._ledger.history(
            {watcher.resource: watcher.reported for watcher in self._watchers if not watcher.only_even}
        )
        for watcher in self._watchers:
            watcher.check(history)

    # ---- until the end

    async def _load(
        self, session: ConnectionSettings, connections: AsyncExitStack, *, end_now: Callable[[], None]
    ) -> list[bool]:
        left = self._chance.randint(*ACKNOWLEDGED)

        def on_acknowledged() -> None:
            nonlocal left
            left -= 1
            if left == 0:
                end_now()

        clients = [await connected(session, connections) for _ in self._writers]
        async with asyncio.TaskGroup() as tasks:
            following = [
                tasks.create_task(watcher.follow(session, hang_up_after=self._chance.randint(1, 40)))
                for watcher in self._watchers
            ]
            for writer, client in zip(self._writers, clients, strict=True):
                chance = random.Random(self._chance.random())
                tasks.create_task(
                    writer.write_until_lost(session, client, chance=chance, on_acknowledged=on_acknowledged)
                )
        return [task.result() for task in following]


async def connected(session: ConnectionSettings, connections: AsyncExitStack) -> Client:
    client = await session.connected()
    connections.push_async_callback(client.close)
    return client


def keys_of(writer: str) -> list[Key]:
    return [Key(resource, f"{writer}-{number}") for resource in KINDS for number in range(KEYS_A_KIND)]


def in_order(found: dict[Key, Json | None], resource: str) -> list[Json]:
    return [obj for key, obj in sorted(found.items()) if key.resource == resource and obj is not None]
