"""What always holds while a simulated PD moves regions and leaders about."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from plimsoll.local.tidb.pd.scheduling import advance, compute_seconds_to_settle
from plimsoll.local.tidb.pd.stores import OFFLINE, TOMBSTONE, PdState, StoreState
from plimsoll.runtime.virtual_run import DEFAULT_START as START

REGIONS = 30


def _store(number: int, *, special: bool = False, state: int = 0) -> StoreState:
    return StoreState(
        id=number,
        address=f"s{number}",
        namespace="prod",
        cluster="db",
        pod=f"s{number}",
        pod_uid=f"u{number}",
        started=START,
        labels={"specialUse": "hotRegion"} if special else {},
        state=state,
    )


def _bootstrapped(normal: int, special: int) -> PdState:
    stores = [_store(index + 1, special=index >= normal) for index in range(normal + special)]
    first = replace(stores[0], regions=REGIONS, leaders=REGIONS)
    return PdState(cluster_uid="u", as_of=START, stores=(first, *stores[1:]), regions=REGIONS, next_id=99)


_clusters = st.builds(_bootstrapped, st.integers(1, 5), st.integers(0, 3))
_gaps = st.lists(st.floats(0, 40, allow_nan=False), max_size=6)


@settings(max_examples=60, deadline=None)
@given(state=_clusters, gaps=_gaps, leaving=st.integers(1, 8), evicted=st.integers(0, 8))
def test_no_region_is_lost_and_none_is_twice_on_a_store(
    state: PdState, gaps: list[float], leaving: int, evicted: int
) -> None:
    now = START
    for number, gap in enumerate(gaps):
        now += timedelta(seconds=gap)
        before = sum(store_state.regions for store_state in state.stores)
        state = advance(state, now=now)
        after = sum(store_state.regions for store_state in state.stores)
        assert before <= after <= REGIONS * 3
        assert all(0 <= store_state.leaders <= store_state.regions <= REGIONS for store_state in state.stores)
        assert sum(store_state.leaders for store_state in state.stores) == REGIONS
        if number == 1:
            stores = tuple(
                replace(store_state, state=OFFLINE) if store_state.id == leaving else store_state
                for store_state in state.stores
            )
            state = replace(state, stores=stores, evicting=(evicted,))


@settings(max_examples=40, deadline=None)
@given(state=_clusters, gaps=_gaps)
def test_how_often_one_looks_does_not_matter(state: PdState, gaps: list[float]) -> None:
    now, looked_often = START, state
    for gap in gaps:
        now += timedelta(seconds=gap)
        looked_often = advance(looked_often, now=now)

    assert looked_often.stores == advance(state, now=now).stores


@settings(max_examples=40, deadline=None)
@given(state=_clusters)
def test_a_cluster_comes_to_rest_when_it_says(state: PdState) -> None:
    rest = START + timedelta(seconds=compute_seconds_to_settle(state, now=START))
    settled = advance(state, now=rest)

    assert compute_seconds_to_settle(settled, now=rest) == 0
    assert advance(settled, now=rest + timedelta(days=1)).stores == settled.stores


@settings(max_examples=40, deadline=None)
@given(normal=st.integers(3, 6), special=st.integers(1, 3))
def test_what_leaves_a_hot_store_fits_back_onto_ordinary_ones(normal: int, special: int) -> None:
    later = START + timedelta(hours=1)
    state = advance(_bootstrapped(normal, special), now=later)
    last = state.stores[-1]
    assert last.regions > 0
    state = advance(state.with_store(replace(last, state=OFFLINE)), now=later + timedelta(hours=1))

    assert state.stores[-1].state == TOMBSTONE


def test_only_an_empty_store_is_buried() -> None:
    later = START + timedelta(hours=1)
    state = advance(_bootstrapped(3, 0), now=later)
    state = advance(state.with_store(replace(state.stores[2], state=OFFLINE)), now=later + timedelta(days=1))

    assert state.stores[2].state == OFFLINE
    assert state.stores[2].regions == REGIONS
