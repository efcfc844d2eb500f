"""`plimsoll tidb planner` as a process of its own, asked over HTTP."""

from __future__ import annotations

import json
import subprocess
import sys
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NamedTuple
from urllib.error import HTTPError
from urllib.request import Request, urlopen

from tests.e2e.ports import lasting_port
from tests.e2e.tidb.prometheus_processes import wait_for
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    Json = dict[str, Any]


class PlannerAnswer(NamedTuple):
    """What came back."""

    status: int
    body: Any
    is_whole: bool

    @property
    def counts(self) -> dict[str, int]:
        assert (self.status, self.is_whole) == (200, True), self
        return {plan["resource_type"]: plan["count"] for plan in self.body}

    @property
    def error(self) -> tuple[int, str]:
        assert not self.is_whole
        return self.status, self.body["error"] if isinstance(self.body, dict) else ""


class PlannerProcess(NamedTuple):
    """One that serves."""

    process: subprocess.Popen[bytes]
    url: str

    def ask(self, strategy: Json) -> PlannerAnswer:
        request = Request(f"{self.url}/autoscaling", data=json.dumps(strategy).encode(), method="POST")
        try:
            with urlopen(request, timeout=PATIENCE_S) as answer:
                return PlannerAnswer(answer.status, json.load(answer), answer.headers["X-Plan-Complete"] == "true")
        except HTTPError as refused:
            with refused:
                return PlannerAnswer(refused.code, json.load(refused), refused.headers["X-Plan-Complete"] is not None)


@contextmanager
def planner(scratch: Path, **flags: str) -> Iterator[PlannerProcess]:
    """Of `prod/db`, on a port of its own; it ends by a signal, without a traceback."""
    address = f"127.0.0.1:{lasting_port()}"
    given = {"listen": address, "tc": "prod/db", **flags}
    words = [word for name, value in given.items() for word in (f"--{name.replace('_', '-')}", value)]
    errors = scratch / "planner.stderr"
    with errors.open("ab") as sink:
        process = subprocess.Popen([sys.executable, "-m", "plimsoll", "tidb", "planner", *words], stderr=sink)
    try:
        wait_for(f"http://{address}/healthz", process)
        yield PlannerProcess(process, f"http://{address}")
        process.terminate()
        assert process.wait(timeout=PATIENCE_S) == 0
    finally:
        process.kill()
        process.wait(timeout=PATIENCE_S)
    assert "Traceback" not in errors.read_text()
