"""`AiohttpClient` against servers that do not do what they should: every time a value, never an exception."""

from __future__ import annotations

import asyncio
import socket
import threading
from typing import TYPE_CHECKING

from plimsoll.web.client import AiohttpClient, FailureKind, Request, RequestFailed, Response
from tests.e2e.ports import lasting_port
from tests.e2e.tidb.fake_servers import serving

if TYPE_CHECKING:
    from collections.abc import Callable


def exchanged(asked: Request, *, timeout_s: float = 60) -> Response | RequestFailed:
    async def exchange() -> Response | RequestFailed:
        async with AiohttpClient(timeout_s=timeout_s) as web:
            return await web.send(asked)

    return asyncio.run(exchange())


def test_an_answer_comes_back_with_its_status() -> None:
    heard = []

    def answer(method: str, path: str, body: bytes) -> tuple[int, bytes]:
        heard.append((method, path, body))
        return 418, b"I am a\n teapot"

    with serving(answer) as url:
        found = exchanged(Request(method="POST", url=f"{url}/a%2Fb?q=%2B1", body=b"x=1", content_type="text/plain"))
    assert isinstance(found, Response)
    assert (found.status, found.body, found.headers["content-length"]) == (418, b"I am a\n teapot", "14")
    assert found.excerpt == "I am a teapot"
    assert heard == [("POST", "/a%2Fb?q=%2B1", b"x=1")]


def test_headers_of_a_request_are_sent_and_those_of_its_answer_come_back() -> None:
    heard = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            caller, _ = server.accept()
            with caller:
                heard.append(caller.recv(65_536))
                caller.sendall(b"HTTP/1.1 202 Accepted\r\nUser-Task-ID: 7\r\nContent-Length: 0\r\n\r\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        found = exchanged(Request(method="POST", url=url, headers={"User-Task-ID": "7", "Cookie": "a=b"}))
        thread.join()
    assert isinstance(found, Response)
    assert (found.status, found.headers["user-task-id"]) == (202, "7")
    assert b"User-Task-ID: 7\r\n" in heard[0]
    assert b"Cookie: a=b\r\n" in heard[0]


def test_no_server_there() -> None:
    url = f"http://127.0.0.1:{lasting_port()}"
    found = exchanged(Request(method="GET", url=f"{url}/"))
    assert isinstance(found, RequestFailed)
    assert found.problem.startswith(f"cannot reach {url}: ")
    assert found.kind is FailureKind.UNCONNECTED


def test_a_host_that_takes_no_connection_is_not_waited_for() -> None:
    with socket.socket() as server:
        server.bind(("127.0.0.1", 0))
        server.listen(0)
        address = server.getsockname()
        waiting = [socket.socket() for _ in range(4)]  # They fill the queue of the server, which accepts none.
        for caller in waiting:
            caller.settimeout(0)
            caller.connect_ex(address)
        found = exchanged(Request(method="GET", url=f"http://127.0.0.1:{address[1]}/", connect_timeout_s=0.2))
        for caller in waiting:
            caller.close()
    assert isinstance(found, RequestFailed)
    assert found.kind is FailureKind.UNCONNECTED


def test_an_answer_above_the_limit_is_cut_off() -> None:
    with serving(lambda *_: (200, b"x" * 100_000)) as url:

        async def exchange() -> Response | RequestFailed:
            async with AiohttpClient(max_bytes=50_000) as web:
                return await web.send(Request(method="GET", url=url))

        found = asyncio.run(exchange())
    assert isinstance(found, RequestFailed)
    assert "more than 50000 bytes" in found.problem
    assert found.kind is FailureKind.LOST


def test_an_answer_that_goes_on_after_its_end_is_reported_in_one_short_line() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:

        def answer() -> None:
            caller, _ = server.accept()
            with caller:
                caller.recv(65_536)
                caller.sendall(b"HTTP/1.1 204 No Content\r\n\r\n[]\n[1]\n")

        thread = threading.Thread(target=answer)
        thread.start()
        url = f"http://127.0.0.1:{server.getsockname()[1]}"
        found = exchanged(Request(method="GET", url=f"{url}/"))
        thread.join()
    assert found == RequestFailed(problem=f"cannot reach {url}: what it answers is not HTTP: Bad status line")


def test_a_name_that_does_not_exist() -> None:
    assert isinstance(exchanged(Request(method="GET", url="http://no-such-host.invalid/")), RequestFailed)


def test_an_answer_that_does_not_come() -> None:
    is_over = threading.Event()

    def answer(_method: str, _path: str, _body: bytes) -> tuple[int, bytes]:
        is_over.wait()
        return 200, b""

    with serving(answer) as url:
        found = exchanged(Request(method="GET", url=f"{url}/"), timeout_s=0.2)
        found_sooner = exchanged(Request(method="GET", url=f"{url}/", timeout_s=0.1), timeout_s=60)
        is_over.set()
    assert found == RequestFailed(kind=FailureKind.TIMED_OUT, problem=f"no answer from {url} within 0.2 s")
    assert found_sooner == RequestFailed(kind=FailureKind.TIMED_OUT, problem=f"no answer from {url} within 0.1 s")


def test_a_redirect_is_not_followed() -> None:
    with serving(always(307, b"elsewhere")) as url:
        found = exchanged(Request(method="GET", url=f"{url}/"))
    assert isinstance(found, Response)
    assert (found.status, found.body) == (307, b"elsewhere")


def always(status: int, body: bytes) -> Callable[[str, str, bytes], tuple[int, bytes]]:
    def answer(_method: str, _path: str, _body: bytes) -> tuple[int, bytes]:
        return status, body

    return answer
