"""A server in a process of its own and plain clients for it: what benchmarks over the wire are made of.

The clients parse just enough HTTP to stay out of the measurement; the server's share is read from its processor time.
"""

from __future__ import annotations

import asyncio
import base64
import json
import os
import signal
import ssl
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import yaml

if TYPE_CHECKING:
    from collections.abc import Iterator

_TICKS = os.sysconf("SC_CLK_TCK")


class Server(NamedTuple):
    """One that runs."""

    process: subprocess.Popen[str]
    port: int
    ca_pem: str
    token: str

    def cpu_s(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / _TICKS

    def memory_bytes(self) -> int:
        return int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    async def connected(self) -> Connection:
        trusting = ssl.create_default_context(cadata=self.ca_pem)
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, ssl=trusting, limit=2**26)
        return Connection(reader, writer, self.token)


@contextmanager
def apiserver(data: str, *arguments: str) -> Iterator[Server]:
    with running("plimsoll", "apiserver", "--data", data, "--port", "0", *arguments) as server:
        yield server


@contextmanager
def running(module: str, *arguments: str) -> Iterator[Server]:
    """A server that prints what `plimsoll apiserver` does."""
    command = [sys.executable, "-m", module, *arguments]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        file = process.stdout.readline().split()[1]
        process.stdout.readline()
        config = yaml.safe_load(Path(file).read_text())
        cluster = config["clusters"][0]["cluster"]
        ca_pem = base64.b64decode(cluster["certificate-authority-data"]).decode()
        port = urlsplit(cluster["server"]).port or 0
        try:
            yield Server(process, port, ca_pem, config["users"][0]["user"]["token"])
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait()


class Connection(NamedTuple):
    """One keep-alive connection."""

    reader: asyncio.StreamReader
    writer: asyncio.StreamWriter
    token: str

    async def ask(self, method: str, path: str, body: Any = None) -> bytes:
        """The body of the answer, which must be a good one."""
        self.send(method, path, body)
        head = await self.head()
        length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
        answer = await self.reader.readexactly(length)
        if not head.startswith(b"HTTP/1.1 20"):
            raise RuntimeError(f"{method} {path}: {answer.decode()}")
        return answer

    def send(self, method: str, path: str, body: Any = None) -> None:
        content = b"" if body is None else json.dumps(body).encode()
        kind = "application/merge-patch+json" if method == "PATCH" else "application/json"
        head = (
            f"{method} {path} HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {self.token}\r\n"
            f"Content-Type: {kind}\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        self.writer.write(head.encode() + content)

    async def head(self) -> bytes:
        return await self.reader.readuntil(b"\r\n\r\n")

    async def lines_until(self, count: int) -> None:
        """Read chunks of a watch until so many events, each of which ends a line, have come."""
        seen = 0
        while seen < count:
            size = int(await self.reader.readline(), 16)
            seen += (await self.reader.readexactly(size + 2)).count(b"\n") - 1

    async def close(self) -> None:
        self.writer.transport.abort()
        await asyncio.sleep(0)
