"""Credentials that take longer than a call: a plugin that runs, a person who looks for a password."""

from __future__ import annotations

import asyncio

import pytest

from plimsoll.kube.access import Access, Credential
from plimsoll.kube.errors import Closed, CredentialsFailed, CredentialsLate
from plimsoll.kube.transport import Request
from tests.e2e.kube_http.servers import ScriptedServer, reaching, serving
from tests.e2e.timeouts import PATIENCE_S

pytestmark = pytest.mark.asyncio

SHORT = Request("PATCH", "/", timeout_s=0.05)


class DelayedCredentials:
    """Answers when it is let."""

    def __init__(self, *, is_named: bool = True) -> None:
        self.answers = asyncio.Event()
        self.failure: CredentialsFailed | None = None
        self.runs = 0
        self.is_ended = False
        if is_named:
            self.find_late_credentials = lambda: CredentialsLate(
                "exec plugin login: runs", path="config: users[0].user.exec"
            )

    async def get_current(self) -> Credential:
        self.runs += 1
        try:
            await self.answers.wait()
        finally:
            self.is_ended = True
        if self.failure is not None:
            raise self.failure
        return Credential(headers={"Authorization": "Bearer t"})

    def invalidate(self, _credential: Credential) -> None:
        pass


async def until_all_wait() -> None:
    """Let everything go on that waits for no socket: no credentials do here."""
    for _ in range(20):
        await asyncio.sleep(0)


def access(port: int, plugin: DelayedCredentials) -> Access:
    return Access(server=f"http://127.0.0.1:{port}", credentials=plugin, origin="context c of config")


async def test_a_call_that_cannot_wait_is_not_sent_and_names_the_plugin():
    application, plugin = ScriptedServer(), DelayedCredentials()
    async with serving(application) as port, reaching(access(port, plugin)) as transport:
        with pytest.raises(CredentialsLate) as caught:
            await transport.send(SHORT)
    reported = "exec plugin login: runs; PATCH / had 0.05 s for everything and was not sent"
    assert str(caught.value) == f"config: users[0].user.exec: {reported}"
    assert caught.value.exit_code == 2
    assert application.heads == []


async def test_credentials_without_a_description_are_named_by_their_origin():
    async with (
        serving(ScriptedServer()) as port,
        reaching(access(port, DelayedCredentials(is_named=False))) as transport,
    ):
        with pytest.raises(CredentialsLate, match=r"^context c of config: no credentials came; PATCH / had"):
            await transport.send(SHORT)


async def test_the_run_goes_on_for_the_next_call():
    application, plugin = ScriptedServer(), DelayedCredentials()
    async with serving(application) as port, reaching(access(port, plugin)) as transport:
        for _ in range(3):
            with pytest.raises(CredentialsLate):
                await transport.send(SHORT)
        waiting = asyncio.create_task(transport.send(Request("GET", "/", timeout_s=PATIENCE_S)))
        await until_all_wait()
        plugin.answers.set()
        assert (await waiting).is_success
    assert plugin.runs == 1
    assert [head.values("authorization") for head in application.heads] == [["Bearer t"]]


async def test_a_call_that_is_cancelled_leaves_the_run_to_others():
    plugin = DelayedCredentials()
    async with serving(ScriptedServer()) as port, reaching(access(port, plugin)) as transport:
        gone = asyncio.create_task(transport.send(Request("GET", "/", timeout_s=PATIENCE_S)))
        waiting = asyncio.create_task(transport.send(Request("GET", "/", timeout_s=PATIENCE_S)))
        await until_all_wait()
        gone.cancel()
        await asyncio.wait((gone,))
        plugin.answers.set()
        assert (await waiting).is_success
    assert gone.cancelled()
    assert plugin.runs == 1


async def test_a_failure_that_no_caller_waited_for_is_not_kept():
    plugin = DelayedCredentials()
    async with serving(ScriptedServer()) as port, reaching(access(port, plugin)) as transport:
        with pytest.raises(CredentialsLate):
            await transport.send(SHORT)
        plugin.failure = CredentialsFailed("no")
        plugin.answers.set()
        await until_all_wait()
        plugin.failure = None
        assert (await transport.send(Request("GET", "/"))).is_success
    assert plugin.runs == 2


async def test_closing_the_transport_ends_the_plugin_and_pending_requests():
    plugin = DelayedCredentials()
    async with serving(ScriptedServer()) as port:
        transport = reaching(access(port, plugin))
        waiting = asyncio.create_task(transport.send(Request("GET", "/", timeout_s=PATIENCE_S)))
        await until_all_wait()
        await transport.aclose()
        assert plugin.is_ended
        with pytest.raises(Closed):
            await waiting
