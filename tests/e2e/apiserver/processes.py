"""`plimsoll apiserver` as a process of its own, with a plain HTTPS client for it."""

from __future__ import annotations

import base64
import http.client
import json
import signal
import ssl
import subprocess
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.parse import urlsplit

import yaml

from tests.e2e.timeouts import PATIENCE_S, speaking_in_time

if TYPE_CHECKING:
    from collections.abc import Iterator


class ApiServer(NamedTuple):
    process: subprocess.Popen[str]
    url: str
    kubeconfig: Path
    reported: str

    @property
    def config(self) -> dict[str, Any]:
        return yaml.safe_load(self.kubeconfig.read_text())

    @property
    def token(self) -> str:
        return self.config["users"][0]["user"]["token"]

    @property
    def ca_pem(self) -> str:
        return base64.b64decode(self.config["clusters"][0]["cluster"]["certificate-authority-data"]).decode()

    def connection(self) -> http.client.HTTPSConnection:
        trusting = ssl.create_default_context(cadata=self.ca_pem)
        where = urlsplit(self.url)
        return http.client.HTTPSConnection(where.hostname or "", where.port, context=trusting, timeout=PATIENCE_S)

    def ask(
        self, method: str, path: str, body: Any = None, *, token: str = "", content: str = "application/json"
    ) -> tuple[int, Any]:
        connection = self.connection()
        headers = {"Authorization": f"Bearer {token or self.token}", "Content-Type": content}
        connection.request(method, path, body=None if body is None else json.dumps(body), headers=headers)
        response = connection.getresponse()
        content = json.loads(response.read())
        connection.close()
        return response.status, content

    def stop(self, number: signal.Signals = signal.SIGTERM) -> int:
        self.process.send_signal(number)
        return self.process.wait(timeout=PATIENCE_S)


def started(data: Path, *arguments: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "plimsoll", "apiserver", "--data", str(data), *arguments]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


@contextmanager
def running(data: Path, *arguments: str) -> Iterator[ApiServer]:
    """A server that has reported that it is ready; killed at the end if it still runs."""
    with started(data, "--port", "0", *arguments) as process:
        assert process.stdout is not None
        try:
            with speaking_in_time(process):
                first, second = process.stdout.readline(), process.stdout.readline()
            assert second.startswith("ready at "), process.communicate()
            url = second.removeprefix("ready at ").split(";")[0]
            yield ApiServer(process, url, Path(first.split()[1]), first + second)
        finally:
            process.kill()
            process.communicate()


def config_map(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"key": name}}
