"""`--max-removals-per-hour` holds over restarts, and holds when removals cannot be counted."""

from __future__ import annotations

from plimsoll.kube.errors import NotSent
from plimsoll.nodes.scaledown.removal_rate import CONFIG_MAP, RemovalLimit
from plimsoll.objects.api.core import ConfigMap
from tests.kube.embedded_api import EmbeddedApi
from tests.nodes.actuation.builders import removal
from tests.nodes.actuation.test_deletion_failures import FaultyCalls, PortFaults

NAMESPACE = "kube-system"


def removal_limit(world: EmbeddedApi) -> RemovalLimit:
    return RemovalLimit(world.client, clock=world.clock, namespace=NAMESPACE)


def nodes(*names: str) -> list:
    return [removal(name, is_empty=True) for name in names]


def test_so_many_removals_begin_in_an_hour_and_no_more():
    with EmbeddedApi() as world:
        limit = removal_limit(world)
        chosen, held = world.do(limit.select_allowed(nodes("a", "b", "c"), 2))
        assert [removal.node for removal in chosen] == ["a", "b"]
        assert held["c"].code == "MaxRemovalsPerHour"
        world.run.advance_by(3599)
        assert world.do(limit.select_allowed(nodes("c"), 2))[0] == ()
        world.run.advance_by(2)
        assert [removal.node for removal in world.do(limit.select_allowed(nodes("c"), 2))[0]] == ["c"]


def test_a_new_process_knows_what_the_old_one_removed():
    with EmbeddedApi() as world:
        world.do(removal_limit(world).select_allowed(nodes("a", "b"), 3))
        chosen, _ = world.do(removal_limit(world).select_allowed(nodes("c", "d"), 3))
        assert [removal.node for removal in chosen] == ["c"]


def test_without_a_limit_nothing_is_read_or_written():
    faulty = PortFaults(FaultyCalls)
    with EmbeddedApi(through=faulty.wrap) as world:
        faulty.port.error = NotSent("no route")
        chosen, held = world.do(removal_limit(world).select_allowed(nodes("a"), None))
        assert ([removal.node for removal in chosen], held) == (["a"], {})


def test_without_a_count_nothing_is_removed():
    faulty = PortFaults(FaultyCalls)
    with EmbeddedApi(through=faulty.wrap) as world:
        faulty.port.error = NotSent("no route")
        chosen, held = world.do(removal_limit(world).select_allowed(nodes("a"), 5))
        assert (chosen, held["a"].code) == ((), "RemovalsNotCounted")


def test_a_group_that_goes_whole_waits_until_there_is_room_for_all_of_it():
    with EmbeddedApi() as world:
        whole = [removal(f"w-{number}", group="w", is_empty=True, goes_whole=True) for number in range(3)]
        chosen, held = world.do(removal_limit(world).select_allowed([*whole, *nodes("a", "b", "c")], 2))
        assert [removal.node for removal in chosen] == ["a", "b"]
        assert sorted(held) == ["c", "w-0", "w-1", "w-2"]


def test_what_people_write_into_the_config_map_counts_nothing_but_what_can_be_read():
    with EmbeddedApi() as world:
        now = int(world.clock.now().timestamp())
        body = {"metadata": {"name": CONFIG_MAP}, "data": {"removals": f"oops,{now}:2,1:x,:,{now}:²"}}
        world.do(world.client.create(ConfigMap, body, namespace=NAMESPACE))
        chosen, _ = world.do(removal_limit(world).select_allowed(nodes("a", "b"), 3))
        assert len(chosen) == 1
