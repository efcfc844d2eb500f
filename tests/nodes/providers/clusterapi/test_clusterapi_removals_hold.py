"""Whatever comes between them, removals take the nodes that were named, each once, and no other."""

from __future__ import annotations

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.errors import TimedOut
from plimsoll.local.cluster_api.machines import BOOT_S
from plimsoll.nodes.model.call_outcomes import Done
from plimsoll.nodes.providers.values import NodeRef
from tests.nodes.providers.clusterapi.capi_clusters import CapiCluster
from tests.nodes.providers.clusterapi.test_clusterapi_changes import ScaleFaults

_NODES = 5

calls = st.tuples(
    st.integers(0, _NODES - 1).map(lambda number: f"removes {number}"),
    st.sampled_from(["", "scale is lost on the way", "scale's answer is lost"]),
)
between = st.sampled_from(["nothing", "a refresh", "a new process", "cluster api acts"])


def ref(number: int) -> NodeRef:
    name = f"md-s-{number + 1:03}"
    return NodeRef(provider_id=f"test:///zone/{name}", name=f"node-{name}")


class RemovalScenario:
    """A deployment of five nodes; Cluster API acts only when the test says so."""

    def __init__(self, world: CapiCluster, fault: ScaleFaults) -> None:
        self.world, self.fault = world, fault
        world.deployment("md", replicas=_NODES)
        for _ in range(3):
            world.do(world.capi.step())
            world.after(BOOT_S)
        self.group = world.refreshed()

    def remove(self, number: int, fault: str) -> None:
        self.fault.is_on = bool(fault)
        self.fault.is_done = "answer" in fault
        self.world.do(self.group.delete_nodes([ref(number)]))
        self.fault.is_on = False

    def let(self, happen: str) -> None:
        if happen == "cluster api acts":
            self.world.do(self.world.capi.step())
        if happen == "a new process":
            self.world.provider = self.world.restarted()
        if happen != "nothing":
            self.group = self.world.refreshed()


@given(st.lists(st.tuples(calls, between), min_size=1, max_size=7))
@settings(deadline=None, max_examples=12)
def test_only_named_nodes_go_and_each_is_paid_for_once(story: list[tuple[tuple[str, str], str]]):
    fault = ScaleFaults(TimedOut("lost"))
    fault.is_on = False
    with CapiCluster(runs=False, through=fault) as world:
        reported = RemovalScenario(world, fault)
        named = set()
        for (removal, trouble), happens in story:
            number = int(removal.split()[1])
            named.add(number)
            reported.remove(number, trouble)
            reported.let(happens)
        # The autoscaler goes on until all of them are gone.
        for number in sorted(named):
            reported.let("a refresh")
            reported.remove(number, "")
            reported.let("cluster api acts")
        stay = [ref(number).name for number in range(_NODES) if number not in named]
        assert (world.nodes(), world.replicas()) == (stay, len(stay))


def test_removals_side_by_side_do_not_get_in_each_others_way():
    with CapiCluster() as world:
        world.deployment("md", replicas=4)
        world.after(BOOT_S + 5)
        first, second, third, fourth = world.nodes()
        group = world.refreshed()
        nodes = [world.node(second), world.node(third)]

        async def both() -> list[object]:
            return list(await asyncio.gather(*(group.delete_nodes([node]) for node in nodes)))

        assert world.do(both()) == [Done(), Done()]
        world.after(5)
        assert (world.nodes(), world.replicas()) == ([first, fourth], 2)
