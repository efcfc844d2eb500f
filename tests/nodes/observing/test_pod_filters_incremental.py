"""Books, owners and sorted pods are after any changes what a first look would find, and nothing is read twice."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.informer.store.cache import WritableCache
from plimsoll.nodes.cluster_state.health import ClusterHealth
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.observing.listers import ClusterObjects
from plimsoll.nodes.observing.pod_filters import FilteredPods, PodFilter, PodFilterContext
from plimsoll.nodes.observing.pod_owners import PodOwnerIndex
from plimsoll.nodes.observing.pod_store import PodStore
from plimsoll.nodes.observing.provider_state import ProviderState
from plimsoll.nodes.observing.snapshots import LoopSnapshots
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.pods import Pod, PodCondition, PodSpec, PodStatus
from plimsoll.objects.codec.decode_problems import BadObject
from tests.nodes.planning.state.test_snapshot_builder import reported
from tests.scheduling.builders import node

NOON = datetime(2025, 1, 1, 12, tzinfo=UTC)
REFUSED = (PodCondition(type="PodScheduled", status="False", reason="Unschedulable"),)
POLICY = read_options({})
NODES = {name: node(name) for name in ("n1", "n2")}
NAMES = [("a", "p1"), ("a", "p2"), ("b", "p1"), ("b", "p3")]

places = st.sampled_from(NAMES)
owners = st.sampled_from(["", "web", "db"])


@st.composite
def made(draw: st.DrawFn, place: tuple[str, str]) -> Pod:
    named = draw(owners)
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=named, uid=named, controller=True)
    spec: dict[str, Any] = {
        "node_name": draw(st.sampled_from(["", "n1", "n2"])),
        "priority": draw(st.sampled_from([None, -11])),
    }
    return Pod(
        metadata=ObjectMeta(
            namespace=place[0],
            name=place[1],
            creation_timestamp=NOON + timedelta(seconds=draw(st.integers(0, 90))),
            owner_references=(owner,) if named else (),
        ),
        spec=PodSpec(**spec),
        status=PodStatus(
            phase=draw(st.sampled_from(["Pending", "Running", "Failed"])),
            nominated_node_name=draw(st.sampled_from(["", "n3"])),
            conditions=draw(st.sampled_from([(), REFUSED])),
        ),
    )


@st.composite
def change(draw: st.DrawFn) -> tuple[tuple[str, str], Pod | BadObject | None]:
    place = draw(places)
    what = draw(st.sampled_from(["pod", "pod", "bad", "gone"]))
    if what == "bad":
        return place, BadObject(kind="Pod", namespace=place[0], name=place[1], problem="odd")
    return place, draw(made(place)) if what == "pod" else None


@st.composite
def viewpoint(draw: st.DrawFn) -> PodFilterContext:
    delay = draw(st.sampled_from(["0s", "60s"]))
    return PodFilterContext(
        rules=read_options({"new-pod-scale-up-delay": delay}).pods,
        now=NOON + timedelta(seconds=draw(st.integers(0, 200))),
        waits_for_scheduler=draw(st.booleans()),
    )


turns = st.lists(st.tuples(st.lists(change(), max_size=4), viewpoint(), st.booleans()), max_size=6)


def as_found(found: FilteredPods) -> tuple[object, ...]:
    return (dict(found.counted), found.extra_pods, found.pending, found.unprocessed, found.filtered_out)


@given(turns)
@settings(deadline=None, max_examples=150)
def test_what_is_kept_is_what_a_first_look_finds(story: list[Any]):
    cache: WritableCache[Pod] = WritableCache()
    book, owned, sorter = PodStore(cache), PodOwnerIndex(cache, ["ReplicaSet"]), PodFilter()
    follower: dict[tuple[str, str], Pod] = {}
    for changes, view, ends_early in story:
        for place, now in changes:
            cache.remove(place) if now is None else cache.put(place, now)
        book.renew()
        anew = PodStore(cache)
        anew.renew()
        assert sorted(map(id, book)) == sorted(map(id, cache.list()))
        assert {node: {*map(id, on)} for node, on in book.on_nodes.items()} == {
            node: {*map(id, on)} for node, on in anew.on_nodes.items()
        }
        assert {*owned.list_owners()} == {*PodOwnerIndex(cache, ["ReplicaSet"]).list_owners()}
        if ends_early:
            continue
        found = sorter.filter(book, view)
        assert as_found(found) == as_found(PodFilter().filter(anew, view))
        for place in found.counted if found.changed_keys.changed is None else found.changed_keys.changed:
            follower.pop(place, None)
            if place in found.counted:
                follower[place] = found.counted[place]
        found.changed_keys.clear()
        assert follower == found.counted, "who looks where the news say knows everything"


@given(turns, st.lists(st.sets(st.sampled_from(["n1", "n2"])), min_size=6, max_size=6))
@settings(deadline=None, max_examples=60)
def test_snapshots_of_what_is_kept_are_those_of_a_first_look(story: list[Any], nodes_by_turn: list[set[str]]):
    cache: WritableCache[Pod] = WritableCache()
    book, sorter, snapshots = PodStore(cache), PodFilter(), LoopSnapshots()
    for (changes, view, has_guest), names in zip(story, nodes_by_turn, strict=False):
        for place, now in changes:
            cache.remove(place) if now is None else cache.put(place, now)
        guests = [Pod(metadata=ObjectMeta(namespace="a", name="p1"), status=PodStatus(conditions=REFUSED))] * has_guest

        def seen(book: PodStore, sorter: PodFilter, snapshots: LoopSnapshots) -> dict[str, Any]:
            book.renew()
            pods = sorter.filter(book, view, extra_pods=guests)  # noqa: B023 - called before the next turn of the loop
            cluster = ClusterObjects(
                nodes=tuple(NODES[name] for name in sorted(names)),  # noqa: B023 - likewise
                pods=book,
                bad_pods=tuple(cache.bad.values()),
            )
            health = ClusterHealth(at=NOON)
            return reported(snapshots.build(cluster, ProviderState(), pods, health=health, policy=POLICY, number=1))

        assert seen(book, sorter, snapshots) == seen(PodStore(cache), PodFilter(), LoopSnapshots())


def test_a_pod_that_did_not_change_is_not_judged_again():
    cache: WritableCache[Pod] = WritableCache()
    nominated = Pod(metadata=ObjectMeta(namespace="a", name="p1"), status=PodStatus(nominated_node_name="n1"))
    cache.put(("a", "p1"), nominated)
    book, sorter = PodStore(cache), PodFilter()
    view = PodFilterContext(rules=read_options({}).pods, now=NOON)
    book.renew()
    first = sorter.filter(book, view).counted["a", "p1"]
    cache.put(("a", "p2"), Pod(metadata=ObjectMeta(namespace="a", name="p2")))
    book.renew()
    assert sorter.filter(book, view).counted["a", "p1"] is first


def test_a_guest_stands_for_the_pod_of_its_name_only_where_it_is_planned_for():
    cache: WritableCache[Pod] = WritableCache()
    leaving = Pod(metadata=ObjectMeta(namespace="a", name="p1"), spec=PodSpec(node_name="n1"))
    cache.put(("a", "p1"), leaving)
    book = PodStore(cache)
    book.renew()
    guest = Pod(metadata=ObjectMeta(namespace="a", name="p1"))
    waits, steps = (
        PodFilterContext(rules=read_options({}).pods, now=NOON, waits_for_scheduler=waits_for_scheduler)
        for waits_for_scheduler in (True, False)
    )

    live, stepped = (PodFilter().filter(book, context, extra_pods=[guest]) for context in (waits, steps))

    assert (live.extra_pods, live.unprocessed, live.pending) == ((), 1, 0)
    assert (stepped.extra_pods, stepped.unprocessed, stepped.pending) == ((guest,), 0, 1)
    assert live.counted["a", "p1"] is leaving
