"""Credentials from an exec plugin, which runs when needed; they are kept until they expire.

A caller that arrives while the plugin runs waits for that run and shares its outcome; a plugin that hangs
is thus waited for once. After a refusal it runs again, unless the credentials have been replaced since. A caller
that cannot wait so long leaves (`find_late_credentials` says what for); a run ends early only when the caller that
started it is cancelled.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final
from weakref import WeakKeyDictionary

import structlog

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.configuration.credentials import has_part
from plimsoll.kube.configuration.exec_config import InteractiveMode
from plimsoll.kube.configuration.exec_credential import format_exec_info, read_credential
from plimsoll.kube.configuration.processes import Command, Finished, Killed, NotStarted
from plimsoll.kube.errors import CredentialsFailed, CredentialsLate

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Credential
    from plimsoll.kube.configuration.exec_config import ExecConfig
    from plimsoll.kube.configuration.processes import Outcome, ProcessRunner

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)

EXEC_INFO: Final = "KUBERNETES_EXEC_INFO"
_LONGEST_QUOTE: Final = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginHost:
    """What plugins depend on: processes, terminal, clock."""

    runner: ProcessRunner
    clock: Clock
    environment: Mapping[str, str] = field(repr=False)
    has_terminal: Callable[[], bool]
    timeout_s: float
    interactive_timeout_s: float = 300.0
    """A user may have to look up a password first."""


class ExecPlugin:
    """The credentials of one plugin."""

    def __init__(self, entry: ExecConfig, host: PluginHost) -> None:
        self._entry = entry
        self._host = host
        self._locks: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()
        self._runs = 0
        self._run: tuple[float, float] | None = None
        """When the run that is under way began, and how long it may take."""
        self._credential: Credential | None = None
        self._failure: CredentialsFailed | None = None

    def __repr__(self) -> str:
        return f"ExecPlugin({self._entry.command})"

    async def get_current(self) -> Credential:
        runs_before = self._runs
        while (credential := self._get_valid()) is None:
            async with self._get_lock():
                if self._runs == runs_before:
                    await self._ask()
                elif self._failure is not None:
                    raise CredentialsFailed(self._failure.problem, path=self._failure.path)
                else:
                    runs_before = self._runs  # it succeeded, and has expired or was refused since
        return credential

    def _get_lock(self) -> asyncio.Lock:
        """One run at a time per event loop: the thread of the lease has its own loop, and no loop can wake another."""
        return self._locks.setdefault(asyncio.get_running_loop(), asyncio.Lock())

    def invalidate(self, credential: Credential) -> None:
        if self._credential is not None and has_part(credential, self._credential):
            log.info("credentials.plugin.refused", command=self._entry.command)
            self._credential = None

    def find_late_credentials(self) -> CredentialsLate | None:
        if self._run is None:
            return None
        began_s, limit_s = self._run
        ran_s = self._host.clock.monotonic_s() - began_s
        problem = f"has run for {ran_s:.1f} s without an answer (it may take {limit_s:g} s)"
        return CredentialsLate(f"exec plugin {self._entry.command}: {problem}", path=self._entry.place)

    def _get_valid(self) -> Credential | None:
        found = self._credential
        if found is None or (found.expires_at is not None and self._host.clock.now() >= found.expires_at):
            return None
        return found

    async def _ask(self) -> None:
        """One run. A cancelled run does not count: the next waiting caller starts another."""
        try:
            self._credential, self._failure = await self._run_plugin(), None
        except CredentialsFailed as error:
            self._credential, self._failure = None, error
            self._runs += 1
            raise
        finally:
            self._run = None
        self._runs += 1
        log.info("credentials.plugin.answered", command=self._entry.command, expires_at=self._credential.expires_at)

    async def _run_plugin(self) -> Credential:
        is_interactive = self._is_interactive()
        entry, host = self._entry, self._host
        limit_s = host.interactive_timeout_s if is_interactive else host.timeout_s
        self._run = (host.clock.monotonic_s(), limit_s)
        info = {EXEC_INFO: format_exec_info(entry, is_interactive=is_interactive)}
        outcome = await host.runner.run(
            Command(
                argv=(entry.command, *entry.arguments),
                environment={**host.environment, **entry.environment, **info},
                is_interactive=is_interactive,
                timeout_s=limit_s,
            )
        )
        if not isinstance(outcome, Finished) or outcome.exit_code != 0:
            raise self._build_failure(outcome)
        try:
            return read_credential(outcome.stdout, api_version=entry.api_version, now=host.clock.now())
        except InvalidInput as error:
            raise self._build_error(str(error)) from None

    def _is_interactive(self) -> bool:
        mode = self._entry.interactive_mode
        if mode is InteractiveMode.NEVER:
            return False
        has_terminal = self._host.has_terminal()
        if mode is InteractiveMode.ALWAYS and not has_terminal:
            raise self._build_error("it needs a terminal (interactiveMode Always), and standard input is not one")
        return has_terminal

    def _build_failure(self, outcome: Outcome) -> CredentialsFailed:
        if isinstance(outcome, NotStarted):
            problem = "executable not found" if outcome.is_missing else f"cannot be started: {outcome.reason}"
            return self._build_error(problem, hint=self._entry.install_hint)
        if isinstance(outcome, Killed):
            return self._build_error(f"{outcome.reason}, and was killed{_quote_stderr(outcome.stderr)}")
        how = f"exit code {outcome.exit_code}" if outcome.exit_code > 0 else f"signal {-outcome.exit_code}"
        return self._build_error(f"failed with {how}{_quote_stderr(outcome.stderr)}", hint=self._entry.install_hint)

    def _build_error(self, problem: str, *, hint: str = "") -> CredentialsFailed:
        more = f"\n{hint}" if hint else ""
        return CredentialsFailed(f"exec plugin {self._entry.command}: {problem}{more}", path=self._entry.place)


def _quote_stderr(stderr: bytes) -> str:
    """The end of its stderr, on one line and without escape sequences."""
    text = " ".join(stderr.decode(errors="replace").split())
    text = "".join(letter if letter.isprintable() else "?" for letter in text)
    if not text:
        return ""
    return f': "{text}"' if len(text) <= _LONGEST_QUOTE else f': "…{text[-_LONGEST_QUOTE:]}"'
