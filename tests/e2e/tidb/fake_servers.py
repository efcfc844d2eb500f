"""The rest of a TiDB cluster over HTTP: a played PD, and exporters of instances that Prometheus scrapes."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import ssl
    from collections.abc import Callable, Iterator

    from tests.tidb.pd.fake_pd import FakePd

    Answering = Callable[[str, str, bytes], tuple[int, bytes]]


@contextmanager
def serving(answer: Answering, *, token: str = "", tls: ssl.SSLContext | None = None) -> Iterator[str]:
    """The address of a server that answers so: method, path and body in, status and body out; to who has the token."""

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        # An answer in one piece: in two, the second waits 40 ms for the first to be acknowledged.
        wbufsize = -1

        def _respond(self) -> None:
            body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            known = not token or self.headers.get("Authorization") == f"Bearer {token}"
            status, answered = answer(self.command, self.path, body) if known else (401, b'"a token is needed"')
            self.send_response(status)
            self.send_header("Content-Length", str(len(answered)))
            self.end_headers()
            self.wfile.write(answered)

        do_GET = do_POST = do_PATCH = do_DELETE = _respond  # noqa: N815 - the names http.server looks for

        def log_message(self, *_: object) -> None:
            """Into nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    if tls is not None:
        server.socket = tls.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05})
    thread.start()
    try:
        yield f"{'http' if tls is None else 'https'}://127.0.0.1:{server.server_address[1]}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def pd_server(pd: FakePd) -> Iterator[str]:
    with serving(pd.answer) as url:
        yield url


class FakeExporters:
    """Of TiKV pods that use so many cores; a target each, so that the scrape of one can fail."""

    def __init__(self, used_cores: dict[str, float], *, quota: float) -> None:
        self.used_cores = used_cores
        self.quota = quota
        self.failing: set[str] = set()
        self._used_s = dict.fromkeys(used_cores, 0.0)
        self._until_s = dict.fromkeys(used_cores, time.monotonic())

    def answer(self, _method: str, path: str, _body: bytes) -> tuple[int, bytes]:
        pod = path.rpartition("/")[2]
        if pod in self.failing or pod not in self.used_cores:
            return 500, b"broken"
        used_s = self._used(pod)
        labels = f'instance="{pod}",kubernetes_namespace="prod"'
        lines = [
            "# TYPE tikv_thread_cpu_seconds_total counter",
            # Threads of one instance are summed by the query.
            f'tikv_thread_cpu_seconds_total{{{labels},name="raft"}} {used_s / 4:.6f}',
            f'tikv_thread_cpu_seconds_total{{{labels},name="grpc"}} {used_s * 3 / 4:.6f}',
            "# TYPE tikv_server_cpu_cores_quota gauge",
            f"tikv_server_cpu_cores_quota{{{labels}}} {self.quota}",
            "",
        ]
        return 200, "\n".join(lines).encode()

    def _used(self, pod: str) -> float:
        """Seconds until now, so that late scrapes do not look like bursts."""
        now_s = time.monotonic()
        self._used_s[pod] += self.used_cores[pod] * (now_s - self._until_s[pod])
        self._until_s[pod] = now_s
        return self._used_s[pod]

    def scraping(self, url: str) -> str:
        """Settings of a Prometheus that scrapes them every second."""
        host = url.removeprefix("http://")
        jobs = "".join(
            f"  - {{job_name: {pod}, honor_labels: true, metrics_path: /{pod}, "
            f"static_configs: [{{targets: ['{host}']}}]}}\n"
            for pod in self.used_cores
        )
        return f"global: {{scrape_interval: 1s, scrape_timeout: 1s}}\nscrape_configs:\n{jobs}"
