"""A controller process without a lease; with one, over sockets: tests/e2e."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.access import Access, Credential
from plimsoll.kube.configuration.credentials import FixedCredentials
from plimsoll.kube.requests.options import ClientSettings
from plimsoll.operator.process import ControllerOptions, ControllerProcess, ProcessSettings
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SystemEntropy
from plimsoll.runtime.supervisor import Service
from plimsoll.web.responses import build_text_response

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

pytestmark = pytest.mark.asyncio


class FakeProgram:
    """Notes what happens to it."""

    def __init__(self) -> None:
        self.pages = build_text_response("ok")
        self.notes: list[str] = []
        self.is_running = asyncio.Event()

    def list_standby_services(self) -> list[Service]:
        return [Service(name="read", run=self._read)]

    def list_services(self) -> list[Service]:
        return [Service(name="work", run=self._work)]

    async def leave(self) -> None:
        self.notes.append("left")

    async def _read(self) -> None:
        self.notes.append("reads")
        try:
            await asyncio.Event().wait()
        finally:
            self.notes.append("reads no more")

    async def _work(self) -> None:
        self.notes.append("started")
        self.is_running.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.notes.append("stopped")


ACCESS = Access(server="http://127.0.0.1:1", credentials=FixedCredentials(Credential()))


def process() -> ControllerProcess:
    settings = ProcessSettings(
        name="test",
        access=ACCESS,
        client=ClientSettings(user_agent="test", field_manager="test"),
        host="here",
        address="127.0.0.1:0",
    )
    return ControllerProcess(settings, clock=RealClock(), entropy=SystemEntropy())


async def test_a_cancelled_process_stops_its_services_and_then_leaves():
    program = FakeProgram()
    async with process() as running:
        task = asyncio.create_task(running.run(lambda _client, _guard: program))
        await asyncio.wait_for(program.is_running.wait(), 10)
        task.cancel()
        await asyncio.wait((task,))
    assert set(program.notes[:2]) == {"reads", "started"}
    assert program.notes[2:] == ["stopped", "left", "reads no more"]


async def test_without_a_lease_work_is_done_at_once_and_without_a_guard():
    async with process() as running:

        async def work(client: Client, guard: object) -> bool:
            return client is running.client and guard is None

        assert await running.run_once(work)


@pytest.mark.parametrize(
    ("leader_elect", "dry_run", "lease"),
    [(True, False, "plimsoll-test"), (True, True, ""), (False, False, "")],
)
async def test_only_a_process_that_elects_and_acts_takes_a_lease(*, leader_elect: bool, dry_run: bool, lease: str):
    options = ControllerOptions(access=ACCESS, address=":0", leader_elect=leader_elect)
    settings = options.build_settings("test", lease="plimsoll-test", namespace="own", dry_run=dry_run)
    assert (settings.name, settings.client.user_agent, settings.address) == ("test", "test", ":0")
    taken = settings.lease
    assert ("" if taken is None else taken.name) == lease
    assert taken is None or taken.namespace == "own"


async def test_a_recorder_runs_as_long_as_its_block():
    async with process() as running:
        before = asyncio.all_tasks()
        async with running.record_events():
            assert asyncio.all_tasks() > before
        assert asyncio.all_tasks() == before
