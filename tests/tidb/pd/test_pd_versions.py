"""What PDs of different ages answer, or do not know: who is evicted, what is wrong with regions, which rules hold."""

from __future__ import annotations

import json
from typing import Any

import pytest

from plimsoll.testing import run_virtual
from plimsoll.tidb.pd.client import PdClient, PdFailed
from plimsoll.tidb.planning.drain.types import DrainInProgress, Unknown
from plimsoll.web.client import Request, RequestFailed, Response
from tests.tidb.actuation.drain_builders import DrainHarness

NAMES, LIST = "/pd/api/v1/schedulers", "/pd/api/v1/scheduler-config/evict-leader-scheduler/list"


class FakePdPages:
    """A PD of a few pages; None: the page does not answer."""

    def __init__(self, pages: dict[str, Any]) -> None:
        self._pages = pages

    async def send(self, asked: Request) -> Response | RequestFailed:
        page = self._pages.get(asked.url.removeprefix("http://pd.test"), 404)
        if page is None:
            return RequestFailed(problem="no answer")
        return Response(status=page) if isinstance(page, int) else Response(status=200, body=json.dumps(page).encode())


def evicting(pages: dict[str, Any]) -> frozenset[int] | PdFailed:
    found: frozenset[int] | PdFailed = run_virtual(PdClient("http://pd.test", web=FakePdPages(pages)).list_evicting())
    return found


@pytest.mark.parametrize(
    ("pages", "expected"),
    [
        ({NAMES: ["evict-leader-scheduler-4", "balance-leader-scheduler"]}, {4}),
        ({NAMES: ["evict-leader-scheduler"], LIST: {"store-id-ranges": {"4": [], "7": []}}}, {4, 7}),
        ({NAMES: None, LIST: None}, None),
        ({NAMES: [], LIST: 500}, set()),
        ({NAMES: [], LIST: None}, None),
        ({NAMES: 500, LIST: {"store-id-ranges": {"4": []}}}, {4}),
        ({}, None),
    ],
    ids=["one each", "one for all", "silent", "none", "half silent", "no names", "neither"],
)
def test_whose_leaders_are_moved_away(pages: dict[str, Any], expected: set[int] | None) -> None:
    found = evicting(pages)
    assert isinstance(found, PdFailed) if expected is None else found == expected


def test_a_check_that_pd_does_not_know_is_passed_over() -> None:
    with DrainHarness() as world:
        world.pd.wrong.clear()
        assert isinstance(world.take_out(), DrainInProgress)


def test_a_check_that_fails_is_not(monkeypatch: pytest.MonkeyPatch) -> None:
    with DrainHarness() as world:
        answer = world.pd._answer

        def fail_checks(method: str, path: str, *more: Any) -> Any:
            return (500, "internal error") if "/regions/check" in path else answer(method, path, *more)

        monkeypatch.setattr(world.pd, "_answer", fail_checks)
        assert isinstance(world.take_out(), Unknown)
        assert world.pd.wrote == []


def test_before_the_first_store_there_is_nothing_to_conclude(monkeypatch: pytest.MonkeyPatch) -> None:
    with DrainHarness() as world:
        monkeypatch.setattr(world.pd, "_answer", lambda *_: (500, "TiKV cluster not bootstrapped"))
        outcome = world.take_out()
        assert isinstance(outcome, Unknown)
        assert "not bootstrapped" in outcome.problem
