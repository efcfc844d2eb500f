"""Whatever one read of the controllers says, nothing is scaled in, removed or deleted that the truth keeps.

The grid has every read, watches too, every lie and every scenario of `lying_world`. `make test` runs a part of it, by a
seed; CI a larger part, and `make test-long` all of it. Every guard has a mutation: without the guard,
cells fail.
"""

from __future__ import annotations

import random
import sys
from typing import Any

import pytest
from msgspec.structs import replace

from plimsoll.kube.client import Client
from plimsoll.objects.api.tidb import TidbClusterAutoScaler
from plimsoll.objects.codec.decoding import RawObject, encode_object
from plimsoll.tidb import controller
from plimsoll.tidb.actuation import actuator, deletion, drain
from plimsoll.tidb.observing import cluster_lists, observer
from plimsoll.tidb.pd import access, members
from plimsoll.tidb.pd.client import PdFailed
from plimsoll.tidb.planner import collector
from plimsoll.tidb.planning.drain import steps
from plimsoll.tidb.planning.drain.types import Drained, find_store_to_drain
from plimsoll.tidb.planning.planner import planner
from plimsoll.tidb.prometheus import cpu
from plimsoll.web import prometheus
from tests.effort import share_of
from tests.faults.lies import Lie
from tests.kube.leases.stolen_leases import StolenLease
from tests.tidb.lying_world import KUBERNETES_READS, SCENARIOS, Cell, LyingCluster, all_cells, live

PART = 24
"""The number of cells in `make test`."""
TWO_CASES = (
    Cell("store down, deleted, no stores in status, guard", "pd stores", Lie.EMPTY),
    Cell("steady", "prometheus quota", Lie.DUPLICATED),
)


def live_through(cells: list[Cell]) -> tuple[int, dict[str, list[str]]]:
    """How many cells had a read that lied, and what was removed wrongly, by cell."""
    wrongs, count = {}, 0
    for cell in cells:
        found, lied = live(cell)
        count += bool(lied)
        if found:
            wrongs[str(cell)] = found
    return count, wrongs


def test_nothing_is_removed_on_a_lie(capsys: pytest.CaptureFixture[str]) -> None:
    cells = random.Random("tidb lies").sample(list(all_cells()), PART)
    count, wrongs = live_through([*TWO_CASES, *cells])
    with capsys.disabled():
        sys.stdout.write(f"\n{count} cells lied, {len(wrongs)} with wrongful removals\n")
    assert wrongs == {}
    assert count > PART / 2


def test_the_grid_has_every_read_of_the_api_server() -> None:
    with LyingCluster(Cell("steady", "list pods", Lie.EMPTY)) as world:
        world.settle()
        assert world.seen - {*KUBERNETES_READS} == set()
        assert {"list tidbclusters", "get tidbclusterautoscalers"} <= world.seen


@pytest.mark.slow
@pytest.mark.parametrize("scenario", SCENARIOS)
def test_nothing_is_removed_on_any_lie(scenario: str, capsys: pytest.CaptureFixture[str]) -> None:
    whole = [cell for cell in all_cells() if cell.scenario == scenario]
    cells = random.Random(scenario).sample(whole, share_of(len(whole)))
    count, wrongs = live_through(cells)
    with capsys.disabled():
        sys.stdout.write(f"\n{scenario}: {count} of {len(cells)} cells lied, {len(wrongs)} with wrongful removals\n")
    assert wrongs == {}
    assert count > len(cells) / 3


# ---- without each guard

Patch = tuple[Any, str, Any]


def _guarding_step_of_old(drain: Any, observed: Any, *, settings: Any, now: Any) -> Any:
    if find_store_to_drain(drain, observed.stores) is None:
        return Drained(store_id=None, message="its pod has no store", is_disk_free=False)
    return _guarding_step(drain, observed, settings=settings, now=now)


_guarding_step = steps.choose_next_guarding_step


async def _only_recorded(self: Any, listed: frozenset[int]) -> Any:
    record = self.drain.record
    if record is None or not record.store_id or record.store_id in listed:
        return []
    store = await self._pd.get_store(record.store_id)
    if isinstance(store, PdFailed):
        return [] if store.is_gone else store
    return [] if store.state == "Tombstone" else [drain._observe_store(store)]


async def _unconfirmed(_self: Any) -> None:
    """Writes nothing."""


def _unguarded(web: Any, _guard: Any, *, timeout_s: float) -> Any:
    del timeout_s
    return web


async def _base_is_gone(_self: Any, observed: Any) -> bool:
    return observed.base is None


_list_clusters = cluster_lists.list_clusters


async def _list_without_names(client: Any, namespace: str, *, known: Any) -> Any:
    return await _list_clusters(client, namespace, known=())


async def _list_without_bad(client: Any, namespace: str, *, known: Any) -> Any:
    return replace(await _list_clusters(client, namespace, known=()), unreadable={})


def _max_of_series(answer: Any) -> Any:
    return {pod: [max(amounts)] for pod, amounts in _amounts(answer).items()}


_amounts = cpu._group_by_pod


def _unwarned(answer: Any, query: str, *, at_s: float) -> Any:
    return _read_reply(replace(answer, body=answer.body.replace(b'"warnings"', b'"infos"')), query, at_s=at_s)


_read_reply = prometheus._read


class _CachedAutoscalers:
    """Without the rule that a reconcile reads the autoscaler from the API server: it comes from the watch."""

    def __init__(self) -> None:
        self._informer: Any = None

    def build_controller(self, built: Any, autoscaler: Any, informers: Any, **more: Any) -> None:
        self._informer = informers.get_informer(TidbClusterAutoScaler)
        _build_controller(built, autoscaler, informers, **more)

    async def get(self, asked: Any, of: Any, name: str, namespace: str) -> Any:
        if of is not TidbClusterAutoScaler or self._informer is None:
            return await _get_live(asked, of, name, namespace)
        view = self._informer.cache.get(name, namespace)
        return None if view is None else RawObject(view=view, raw=encode_object(view))


_build_controller = controller.TidbController.__init__
_get_live = observer.Observer._get


def _read_from_caches() -> list[Patch]:
    cached = _CachedAutoscalers()

    async def get(asked: Any, of: Any, name: str, namespace: str) -> Any:
        return await cached.get(asked, of, name, namespace)

    def build(built: Any, autoscaler: Any, informers: Any, **more: Any) -> None:
        cached.build_controller(built, autoscaler, informers, **more)

    return [
        (controller.TidbController, "__init__", build),
        (observer.Observer, "_get", get),
        (actuator.Actuator, "_confirm", _unconfirmed),
    ]


GUARDS: dict[str, tuple[list[Patch], list[Cell]]] = {
    "guarding holds like draining": (
        [(drain, "choose_next_guarding_step", _guarding_step_of_old)],
        [Cell("store down, deleted, no stores in status, guard", "pd stores", Lie.EMPTY)],
    ),
    "an empty list, and a Ready pod without a store": (
        [(steps, "_find_doubt", lambda *_: None)],
        [Cell("deleted, no stores in status", "pd stores", lie) for lie in (Lie.EMPTY, Lie.HALF)],
    ),
    "stores that the list lacks": (
        [(drain._Call, "_read_unlisted", _only_recorded)],
        [Cell("deleted, no pods known", "pd stores", Lie.HALF)],
    ),
    "heartbeats of stores that are removed": (
        [(steps, "_find_silence", lambda *_: None), (members, "_is_from_another_time", lambda *_: False)],
        [Cell("store down", "pd stores", Lie.STALE)],
    ),
    "heartbeats and the clock": (
        [(members, "_is_from_another_time", lambda *_: False), (steps, "_find_silence", lambda *_: None)],
        [Cell("steady", "prometheus used", Lie.CLOCK_BEHIND)],
    ),
    "registered instances that PD does not list": (
        [(planner, "count_unlisted", lambda *_: {})],
        [Cell("steady", "pd topology", Lie.OTHER_HALF)],
    ),
    "warnings of Prometheus": (
        [(prometheus, "_read", _unwarned)],
        [Cell("steady", "prometheus used", Lie.WARNED)],
    ),
    "two series for one instance": (
        [(cpu, "_group_by_pod", _max_of_series)],
        [Cell("steady", "prometheus quota", Lie.DUPLICATED)],
    ),
    "samples from the future": (
        [(collector, "CLOCK_SKEW_S", 1e9)],
        [Cell("steady", "prometheus", Lie.FUTURE)],
    ),
    "answers for another time": (
        [(prometheus, "_EVALUATED_WITHIN_S", 1e12)],
        [Cell("steady", "prometheus used", Lie.STALE)],
    ),
    "clusters that the list lacks": (
        [(observer, "list_clusters", _list_without_names), (deletion, "list_clusters", _list_without_names)],
        [Cell("deleted", "list tidbclusters", Lie.EMPTY)],
    ),
    "clusters that cannot be read": (
        [(observer, "list_clusters", _list_without_bad), (deletion, "list_clusters", _list_without_bad)],
        [Cell("deleted", "list tidbclusters", Lie.UNDECODABLE)],
    ),
    "a base cluster that is gone": (
        [(observer.Observer, "is_base_gone", _base_is_gone)],
        [Cell("deleted", "get tidbclusters", Lie.EMPTY)],
    ),
    "two answers about an autoscaler": (
        [(observer, "_is_contradicted", lambda *_: False)],
        [Cell("steady", "get tidbclusterautoscalers", Lie.HALF)],
    ),
    "an autoscaler as it was": (
        [(actuator.Actuator, "_confirm", _unconfirmed)],
        [Cell("steady", "get tidbclusterautoscalers", Lie.STALE)],
    ),
    "an autoscaler that is read and not watched": (
        _read_from_caches(),
        [Cell("steady", "watch tidbclusterautoscalers", Lie.HALF)],
    ),
    "the lease before PD is changed": (
        [(access, "GuardedHttpClient", _unguarded)],
        [
            Cell(scenario, "pd store", Lie.LEASE_STOLEN)
            for scenario in ("deleted", "deleted, no stores in status", "deleted, no pods known")
        ],
    ),
    "the lease and the record before a store is removed": (
        [
            (Client, "confirm_guard", _unconfirmed),
            (access, "GuardedHttpClient", _unguarded),
            (drain._Call, "_confirm", _unconfirmed),
        ],
        [Cell("deleted", "pd stores", Lie.LEASE_STOLEN)],
    ),
    "the lease is read again before the next renewal": (
        [(StolenLease, "confirm", _unconfirmed)],
        [Cell("deleted", read, Lie.LEASE_STOLEN) for read in ("list tidbclusterautoscalers", "pd store")],
    ),
}


@pytest.mark.parametrize("guard", GUARDS)
def test_without_a_guard_cells_fail(guard: str, monkeypatch: pytest.MonkeyPatch) -> None:
    patches, cells = GUARDS[guard]
    for place, name, instead in patches:
        monkeypatch.setattr(place, name, instead)
    _, wrongs = live_through(cells)
    assert set(wrongs) == {str(cell) for cell in cells}
