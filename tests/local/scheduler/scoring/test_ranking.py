"""The quick way to the best node gives the node that the long way gives, whatever came, changed and went before."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec
from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.scheduler.cache import SchedulerCache
from plimsoll.local.scheduler.equivalence import PodClasses
from plimsoll.local.scheduler.schedule_one import ScheduleResult, schedule_pod
from plimsoll.local.scheduler.scoring.preferences import choose_best_node, is_spread_by_default
from plimsoll.objects.api.meta import OwnerReference
from plimsoll.scheduling.cluster_view import get_pod_key
from tests.scheduling.builders import HOSTNAME, node, pod

if TYPE_CHECKING:
    from plimsoll.objects.api.pods import Pod

TAINT = [{"key": "k", "value": "v", "effect": "PreferNoSchedule"}]

STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("node"), st.integers(0, 5), st.sampled_from(["", "z1", "z2"]), st.sampled_from(["1", "4"])),
        st.tuples(st.just("node gone"), st.integers(0, 5)),
        st.tuples(st.just("pod"), st.sampled_from("ab"), st.booleans(), st.sampled_from(["100m", "500m"])),
        st.tuples(st.just("pod gone"), st.integers(0, 20)),
        st.tuples(st.just("pod leaves"), st.integers(0, 20)),
    ),
    max_size=40,
)


def replica(number: int, app: str, *, owned: bool, cpu: str) -> Pod:
    made = pod(f"p{number}", labels={"app": app}, requests={"cpu": cpu})
    owner = OwnerReference(api_version="apps/v1", kind="ReplicaSet", name=app, uid=app, controller=True)
    metadata = msgspec.structs.replace(made.metadata, owner_references=(owner,) if owned else ())
    return msgspec.structs.replace(made, metadata=metadata)


class Cluster:
    """A cache on which things happen, and the pods that were placed on it."""

    def __init__(self) -> None:
        self.cache = SchedulerCache()
        self.classes = PodClasses()
        self.placed: list[Pod] = []

    def long_way(self, pod: Pod) -> str:
        """By classes that remember nothing."""
        view = self.cache.view
        fitting = PodClasses().find_class(pod).evaluate_fitting(view.nodes.values())
        return choose_best_node(pod, fitting, view) if fitting else ""

    def place(self, pod: Pod) -> None:
        expected = self.long_way(pod)
        found = schedule_pod(pod, self.cache, self.classes)
        assert (found.node if isinstance(found, ScheduleResult) else "") == expected
        if expected:
            self.cache.assume(pod, expected)
            self.placed.append(pod)

    def happens(self, number: int, step: tuple[Any, ...]) -> None:
        match step:
            case "node", which, zone, cpu:
                taints = TAINT if which == 1 else None
                self.cache.put_node(node(f"n{which}", zone=zone, cpu=cpu, taints=taints))
            case "node gone", which:
                self.cache.drop_node(f"n{which}")
                self.classes.forget_node(f"n{which}")
            case "pod", app, owned, cpu:
                self.place(replica(number, app, owned=owned, cpu=cpu))
            case "pod gone", which if which < len(self.placed):
                self.cache.drop_pod(get_pod_key(self.placed.pop(which)))
            case "pod leaves", which if which < len(self.placed):
                one = self.placed[which]
                where = self.cache.find_node_of(get_pod_key(one))
                self.cache.put_pod(pod(one.metadata.name, on=where, labels=one.metadata.labels))


@given(steps=STEPS)
@settings(max_examples=150, deadline=None)
def test_the_best_node_is_that_of_the_long_way(steps: list[tuple[Any, ...]]):
    cluster = Cluster()
    for number in range(3):
        cluster.cache.put_node(node(f"n{number}", zone=f"z{number % 2}"))
    for number, step in enumerate(steps):
        cluster.happens(number, step)
    for number in range(4):
        cluster.place(replica(100 + number, "a", owned=True, cpu="100m"))


def test_nodes_that_share_a_host_share_their_siblings():
    cluster = Cluster()
    for name, host in (("a1", "host-a"), ("a2", "host-a"), ("b", "host-b")):
        cluster.cache.put_node(node(name, labels={HOSTNAME: host}))
    one = replica(0, "a", owned=True, cpu="100m")
    assert is_spread_by_default(one)

    cluster.place(one)
    cluster.place(replica(1, "a", owned=True, cpu="100m"))

    assert [cluster.cache.find_node_of(get_pod_key(item)) for item in cluster.placed] == ["a1", "b"]


def test_a_shape_that_was_not_asked_for_long_starts_over():
    cluster = Cluster()
    cluster.cache.put_node(node("n0"))
    cluster.place(replica(0, "a", owned=True, cpu="100m"))
    for number in range(20_000):
        cluster.cache.put_node(node("n1", labels={"turn": str(number)}))

    cluster.place(replica(1, "a", owned=True, cpu="100m"))

    assert cluster.cache.find_node_of(get_pod_key(cluster.placed[-1])) == "n1"
