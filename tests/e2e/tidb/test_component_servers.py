"""The simulated PD and the planner of `plimsoll up`, over their sockets: where they are, and whom they let in."""

from __future__ import annotations

import urllib.error
import urllib.request
from typing import TYPE_CHECKING

import pytest

from tests.e2e.ports import lasting_port
from tests.e2e.up.up_processes import UpProcess, running

if TYPE_CHECKING:
    from collections.abc import Iterator

PLANNER = 9092 - 6443
PD = 12379 - 6443


@pytest.fixture(scope="module")
def ports() -> int:
    """A base above which there is room for all, all of it below what systems give to clients."""
    return lasting_port() - PD


@pytest.fixture(scope="module")
def up(ports: int, tmp_path_factory: pytest.TempPathFactory) -> Iterator[UpProcess]:
    with running(tmp_path_factory.mktemp("up") / "data", "--nodes", "0", "--port-base", str(ports)) as up:
        yield up


def _asked(port: int, path: str, *, token: str = "") -> tuple[int, str]:
    request = urllib.request.Request(f"http://127.0.0.1:{port}{path}")
    if token:
        request.add_header("Authorization", f"Bearer {token}")
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, error.read().decode()


@pytest.mark.parametrize("above", [PLANNER, PD], ids=["planner", "pd"])
def test_they_are_where_the_base_says_and_ask_for_a_token(up: UpProcess, ports: int, above: int) -> None:
    token = (up.data / "admin.token").read_text().strip()

    assert _asked(ports + above, "/healthz") == (200, '{"status":"ok"}')
    assert _asked(ports + above, "/metrics")[0] == 401
    assert _asked(ports + above, "/metrics", token="wrong")[0] == 401
    assert _asked(ports + above, "/none/such/autoscaling", token=token)[0] in {404, 503}


def test_metrics_are_there_to_be_scraped(up: UpProcess, ports: int) -> None:
    token = (up.data / "admin.token").read_text().strip()
    status, text = _asked(ports + PD, "/metrics", token=token)

    assert status == 200
    assert "# TYPE tikv_thread_cpu_seconds_total counter" in text
