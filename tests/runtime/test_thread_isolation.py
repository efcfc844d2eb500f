"""Nothing leaves a virtual loop's thread, and whoever tries is named."""

from __future__ import annotations

import asyncio
import concurrent.futures
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import LeftVirtualTime
from plimsoll.runtime.virtual_run import VirtualRun
from plimsoll.testing import run_virtual

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

THIS_FILE = Path(__file__).name


def loop() -> Any:
    return asyncio.get_running_loop()


def nothing() -> None:
    pass


class IdleProtocol(asyncio.Protocol):
    pass


def start_a_pool() -> None:
    with concurrent.futures.ThreadPoolExecutor(max_workers=1) as pool:
        pool.submit(nothing)


BY_THE_LOOP: dict[str, Callable[[], Any]] = {
    "run_in_executor": lambda: loop().run_in_executor(None, nothing),
    "create_connection": lambda: loop().create_connection(IdleProtocol, "127.0.0.1", 9),
    "create_server": lambda: loop().create_server(IdleProtocol, "127.0.0.1", 0),
    "create_datagram_endpoint": lambda: loop().create_datagram_endpoint(IdleProtocol, ("127.0.0.1", 0)),
    "create_unix_connection": lambda: loop().create_unix_connection(IdleProtocol, "/nowhere"),
    "create_unix_server": lambda: loop().create_unix_server(IdleProtocol, "/nowhere"),
    "connect_read_pipe": lambda: loop().connect_read_pipe(IdleProtocol, sys.stdin),
    "connect_write_pipe": lambda: loop().connect_write_pipe(IdleProtocol, sys.stdout),
    "connect_accepted_socket": lambda: loop().connect_accepted_socket(IdleProtocol, None),
    "sock_recv": lambda: loop().sock_recv(None, 1),
    "sock_recv_into": lambda: loop().sock_recv_into(None, bytearray()),
    "sock_recvfrom": lambda: loop().sock_recvfrom(None, 1),
    "sock_sendall": lambda: loop().sock_sendall(None, b""),
    "sock_sendto": lambda: loop().sock_sendto(None, b"", None),
    "sock_connect": lambda: loop().sock_connect(None, None),
    "sock_accept": lambda: loop().sock_accept(None),
    "sock_sendfile": lambda: loop().sock_sendfile(None, None),
    "add_reader": lambda: loop().add_reader(0, nothing),
    "remove_reader": lambda: loop().remove_reader(0),
    "add_writer": lambda: loop().add_writer(1, nothing),
    "remove_writer": lambda: loop().remove_writer(1),
    "getaddrinfo": lambda: loop().getaddrinfo("localhost", 80),
    "getnameinfo": lambda: loop().getnameinfo(("127.0.0.1", 80)),
    "start_tls": lambda: loop().start_tls(None, None, None),
    "sendfile": lambda: loop().sendfile(None, None),
    "subprocess_exec": lambda: loop().subprocess_exec(IdleProtocol, "true"),
    "subprocess_shell": lambda: loop().subprocess_shell(IdleProtocol, "true"),
    "add_signal_handler": lambda: loop().add_signal_handler(signal.SIGUSR1, nothing),
}

BY_ASYNCIO: dict[str, Callable[[], Awaitable[Any]]] = {
    "to_thread": lambda: asyncio.to_thread(nothing),
    "open_connection": lambda: asyncio.open_connection("127.0.0.1", 9),
    "start_server": lambda: asyncio.start_server(nothing, "127.0.0.1", 0),  # type: ignore[arg-type]
    "subprocess": lambda: asyncio.create_subprocess_exec("true"),
    "shell": lambda: asyncio.create_subprocess_shell("true"),
}

BY_SIDE_DOORS: dict[str, Callable[[], Any]] = {
    "thread": lambda: threading.Thread(target=nothing).start(),
    "timer thread": lambda: threading.Timer(1, nothing).start(),
    "thread pool": start_a_pool,
    "time.sleep": lambda: time.sleep(0.001),
    "socket": socket.socket,
    "socketpair": lambda: socket.socketpair(),  # noqa: PLW0108 -- looked up when it is called
    "create_connection": lambda: socket.create_connection(("127.0.0.1", 9)),
    "getaddrinfo": lambda: socket.getaddrinfo("localhost", 80),
    "gethostbyname": lambda: socket.gethostbyname("localhost"),
    "Popen": lambda: subprocess.run(["true"], check=True),
    "os.system": lambda: os.system("true"),
}


@pytest.mark.parametrize("leave", [*BY_THE_LOOP.values(), *BY_SIDE_DOORS.values()], ids=[*BY_THE_LOOP, *BY_SIDE_DOORS])
def test_leaving_by_a_call_is_refused_and_names_this_file(leave: Callable[[], Any]):
    async def main():
        leave()

    with pytest.raises(LeftVirtualTime, match=THIS_FILE):
        run_virtual(main())


@pytest.mark.parametrize("leave", BY_ASYNCIO.values(), ids=BY_ASYNCIO)
def test_leaving_by_an_await_is_refused_and_names_this_file(leave: Callable[[], Awaitable[Any]]):
    async def main():
        await leave()

    with pytest.raises(LeftVirtualTime, match=THIS_FILE):
        run_virtual(main())


@pytest.mark.parametrize("leave", BY_ASYNCIO.values(), ids=BY_ASYNCIO)
def test_whoever_started_a_task_that_leaves_is_named(leave: Callable[[], Any]):
    async def main():
        await asyncio.wait_for(asyncio.create_task(leave()), timeout=10)

    with pytest.raises(LeftVirtualTime, match=rf"{THIS_FILE}:\d+ in .*main"):
        run_virtual(main())


def test_the_line_is_named():
    async def main():
        await asyncio.to_thread(nothing)

    with pytest.raises(
        LeftVirtualTime, match=rf"{THIS_FILE}:{main.__code__.co_firstlineno + 1} in .*main; nothing may"
    ):
        run_virtual(main())


def test_swallowing_the_error_does_not_help():
    async def main():
        try:
            await asyncio.to_thread(nothing)
        except LeftVirtualTime:
            return "nobody noticed"

    with pytest.raises(LeftVirtualTime, match=THIS_FILE):
        run_virtual(main())


def test_a_swallowing_background_task_ends_the_run_at_once():
    async def stubborn() -> None:
        while True:
            try:
                threading.Thread(target=nothing).start()
            except LeftVirtualTime:
                await asyncio.sleep(0)

    async def main():
        async with asyncio.TaskGroup() as group:
            group.create_task(stubborn())

    with pytest.raises(LeftVirtualTime, match="stubborn"):
        run_virtual(main())


def test_calling_from_another_thread_is_refused():
    refused: list[BaseException] = []
    with VirtualRun() as run:

        def call_in() -> None:
            try:
                run.loop.call_soon_threadsafe(nothing)
            except LeftVirtualTime as error:
                refused.append(error)

        thread = threading.Thread(target=call_in)
        thread.start()
        thread.join()
        with pytest.raises(LeftVirtualTime, match=rf"{THIS_FILE}:\d+ in .*call_in"):
            run.settle()
    assert len(refused) == 1


def test_calling_threadsafe_from_the_own_thread_is_fine():
    async def main():
        called = asyncio.Event()
        loop().call_soon_threadsafe(called.set)
        await called.wait()
        return "called"

    assert run_virtual(main()) == "called"


def test_leaving_in_a_cleanup_is_reported_too():
    async def leaves_at_the_end() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            time.sleep(0)  # noqa: ASYNC251 -- what must not be

    async def main():
        main.task = asyncio.create_task(leaves_at_the_end())  # type: ignore[attr-defined]
        await asyncio.sleep(1)

    with pytest.raises(LeftVirtualTime, match=r"time\.sleep was called at .*leaves_at_the_end"):
        run_virtual(main())


def test_threads_and_sleeps_work_again_after_the_run():
    before = threading.Thread.start, time.sleep
    with pytest.raises(LeftVirtualTime):
        run_virtual(asyncio.to_thread(nothing))
    assert (threading.Thread.start, time.sleep) == before
    time.sleep(0)
    thread = threading.Thread(target=nothing)
    thread.start()
    thread.join()
    socket.socket().close()


def test_between_the_steps_of_a_run_the_world_is_open():
    with VirtualRun() as run:
        run.settle()
        between = socket.socket()
        assert between.fileno() >= 0
        between.close()
        run.advance_by(1)


def test_other_threads_may_do_as_they_please():
    """A thread that was there before the run sleeps and starts threads while the virtual loop runs in this one."""
    asked, answered = threading.Event(), threading.Event()
    problems: list[BaseException] = []

    def bystander() -> None:
        asked.wait()
        try:
            time.sleep(0)
            helper = threading.Thread(target=nothing)
            helper.start()
            helper.join()
        except LeftVirtualTime as error:
            problems.append(error)
        answered.set()

    thread = threading.Thread(target=bystander)
    thread.start()

    async def main():
        asked.set()
        answered.wait()

    run_virtual(main())
    thread.join()
    assert problems == []
