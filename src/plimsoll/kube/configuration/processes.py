"""Runs a command to its end: the port through which exec plugins are started, and its live implementation.

Every outcome is a value. The stdout of a command may be a secret and appears in no repr. Its stderr is shown once:
forwarded if the command succeeds or takes long (it may contain instructions for the user), otherwise kept for the
message about its failure.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

MOST_OUTPUT_BYTES: Final = 1024 * 1024
_STDERR_HELD_BYTES: Final = 16 * 1024
_STDERR_HELD_S: Final = 1.0
# A plugin may leave a daemon behind that holds its stdout open; what the plugin itself wrote has arrived by then.
_AFTER_EXIT_S: Final = 1.0
_REAPING_S: Final = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to run. Only an interactive command gets our stdin and terminal."""

    argv: Sequence[str] = field(repr=False)
    environment: Mapping[str, str] = field(repr=False)
    is_interactive: bool = False
    timeout_s: float = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """It ended by itself. A negative code is the signal that ended it."""

    exit_code: int
    stdout: bytes = field(default=b"", repr=False)
    stderr: bytes = field(default=b"", repr=False)
    """As far as it was not passed on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NotStarted:
    """The operating system could not start it."""

    reason: str
    is_missing: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """We killed it with all its children: it took too long, or wrote too much."""

    reason: str
    stderr: bytes = field(default=b"", repr=False)


Outcome = Finished | NotStarted | Killed


class ProcessRunner(Protocol):
    """Starts processes; a fake one under virtual time."""

    async def run(self, command: Command) -> Outcome: ...


class RealProcesses:
    """Processes of the operating system. One that is not interactive gets a session of its own, and so no terminal."""

    async def run(self, command: Command) -> Outcome:
        protocol = _PluginProtocol(asyncio.get_running_loop())
        starting = asyncio.create_task(_start(command, protocol))
        try:
            await asyncio.wait((starting,))
            return await protocol.wait_for_outcome(starting.result(), timeout_s=command.timeout_s)
        except OSError as error:
            return NotStarted(reason=error.strerror or str(error), is_missing=isinstance(error, FileNotFoundError))
        finally:
            # Cancelled in the middle of a start, asyncio itself kills the process but not what that has started, and
            # then waits for the processes that hold its pipes.
            await asyncio.wait((starting,))
            if not starting.cancelled() and starting.exception() is None:
                await _end(starting.result(), protocol, has_group=not command.is_interactive)


async def _start(command: Command, protocol: _PluginProtocol) -> asyncio.SubprocessTransport:
    process, _ = await asyncio.get_running_loop().subprocess_exec(
        lambda: protocol,
        *command.argv,
        env=dict(command.environment),
        stdin=None if command.is_interactive else asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=None if command.is_interactive else asyncio.subprocess.PIPE,
        start_new_session=not command.is_interactive,
    )
    return process


class _PluginProtocol(asyncio.SubprocessProtocol):
    """The output of a process, until it has ended."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.exited: asyncio.Future[None] = loop.create_future()
        self._closed: asyncio.Future[None] = loop.create_future()
        self._flooded: asyncio.Future[None] = loop.create_future()
        self._stdout = bytearray()
        self._held_stderr = b""
        self._forwards_stderr = False

    def pipe_data_received(self, fd: int, data: bytes) -> None:
        if fd == 2:
            self._held_stderr += data
            if self._forwards_stderr or len(self._held_stderr) > _STDERR_HELD_BYTES:
                self._forward_stderr()
        elif len(self._stdout) + len(data) <= MOST_OUTPUT_BYTES:
            self._stdout += data
        elif not self._flooded.done():
            self._flooded.set_result(None)

    def process_exited(self) -> None:
        if not self.exited.done():
            self.exited.set_result(None)

    def connection_lost(self, _error: Exception | None) -> None:
        if not self._closed.done():
            self._closed.set_result(None)

    def _forward_stderr(self) -> None:
        self._forwards_stderr = True
        held, self._held_stderr = self._held_stderr, b""
        _forward_output(held)

    async def wait_for_outcome(self, process: asyncio.SubprocessTransport, *, timeout_s: float) -> Outcome:
        patience = asyncio.get_running_loop().call_later(_STDERR_HELD_S, self._forward_stderr)
        try:
            await _wait_for_first(self.exited, self._flooded, within_s=timeout_s)
        finally:
            patience.cancel()
        if self.exited.done():
            await _wait_for_first(self._closed, self._flooded, within_s=_AFTER_EXIT_S)
        if self._flooded.done():
            return Killed(reason=f"it wrote more than {MOST_OUTPUT_BYTES} bytes", stderr=self._held_stderr)
        exit_code = process.get_returncode()
        if exit_code is None:
            return Killed(reason=f"it did not end within {timeout_s:g} s", stderr=self._held_stderr)
        if exit_code == 0:
            self._forward_stderr()
        return Finished(exit_code=exit_code, stdout=bytes(self._stdout), stderr=self._held_stderr)


async def _wait_for_first(*futures: asyncio.Future[None], within_s: float) -> None:
    await asyncio.wait(futures, timeout=within_s, return_when=asyncio.FIRST_COMPLETED)


async def _end(process: asyncio.SubprocessTransport, protocol: _PluginProtocol, *, has_group: bool) -> None:
    """Leave nothing behind: no running process, no zombie, no open pipe."""
    if process.get_returncode() is None:
        with suppress(ProcessLookupError):
            if has_group:
                os.killpg(process.get_pid(), signal.SIGKILL)
            else:
                process.kill()
        await _wait_for_first(protocol.exited, within_s=_REAPING_S)
    process.close()


def _forward_output(data: bytes) -> None:
    if not data:
        return
    with suppress(OSError, ValueError):  # our own stderr may be closed
        sys.stderr.write(data.decode(errors="replace"))
        sys.stderr.flush()


def has_terminal() -> bool:
    """Whether stdin is a terminal."""
    return sys.stdin is not None and not sys.stdin.closed and sys.stdin.isatty()
