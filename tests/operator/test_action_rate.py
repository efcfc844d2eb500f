"""The brake on removals in an hour holds over restarts, and holds when it cannot count."""

from __future__ import annotations

from datetime import timedelta

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.kube.errors import NotSent
from plimsoll.nodes.scaledown.removal_rate import CONFIG_MAP, RemovalLimit
from plimsoll.objects.api.core import ConfigMap
from plimsoll.operator.action_rate import ActionTimes
from plimsoll.runtime.virtual_runs import DEFAULT_START as NOW
from tests.kube.worlds import KubeWorld
from tests.nodes.actuation.builders import removal
from tests.nodes.actuation.test_deletion_failures import Faulty, SomeCalls

NAMESPACE = "kube-system"


def ledger(world: KubeWorld) -> RemovalLimit:
    return RemovalLimit(world.client, clock=world.clock, namespace=NAMESPACE)


def nodes(*names: str) -> list:
    return [removal(name, is_empty=True) for name in names]


def test_so_many_removals_begin_in_an_hour_and_no_more():
    with KubeWorld() as world:
        book = ledger(world)
        chosen, held = world.do(book.allowed(nodes("a", "b", "c"), 2))
        assert [one.node for one in chosen] == ["a", "b"]
        assert held["c"].code == "MaxRemovalsPerHour"
        world.run.advance_by(3599)
        assert world.do(book.allowed(nodes("c"), 2))[0] == ()
        world.run.advance_by(2)
        assert [one.node for one in world.do(book.allowed(nodes("c"), 2))[0]] == ["c"]


def test_a_new_process_knows_what_the_old_one_removed():
    with KubeWorld() as world:
        world.do(ledger(world).allowed(nodes("a", "b"), 3))
        chosen, _ = world.do(ledger(world).allowed(nodes("c", "d"), 3))
        assert [one.node for one in chosen] == ["c"]


def test_without_a_limit_nothing_is_read_or_written():
    faulty = Faulty(SomeCalls)
    with KubeWorld(through=faulty.wrap) as world:
        faulty.port.error = NotSent("no route")
        chosen, held = world.do(ledger(world).allowed(nodes("a"), None))
        assert ([one.node for one in chosen], held) == (["a"], {})


def test_who_cannot_count_removes_nothing():
    faulty = Faulty(SomeCalls)
    with KubeWorld(through=faulty.wrap) as world:
        faulty.port.error = NotSent("no route")
        chosen, held = world.do(ledger(world).allowed(nodes("a"), 5))
        assert (chosen, held["a"].code) == ((), "RemovalsNotCounted")


def test_a_group_that_goes_whole_waits_until_there_is_room_for_all_of_it():
    with KubeWorld() as world:
        whole = [removal(f"w-{number}", group="w", is_empty=True, goes_whole=True) for number in range(3)]
        chosen, held = world.do(ledger(world).allowed([*whole, *nodes("a", "b", "c")], 2))
        assert [one.node for one in chosen] == ["a", "b"]
        assert sorted(held) == ["c", "w-0", "w-1", "w-2"]


def test_what_people_write_into_the_ledger_counts_nothing_but_what_can_be_read():
    with KubeWorld() as world:
        now = int(world.clock.now().timestamp())
        body = {"metadata": {"name": CONFIG_MAP}, "data": {"removals": f"oops,{now}:2,1:x,:,{now}:²"}}
        world.do(world.client.create(ConfigMap, body, namespace=NAMESPACE))
        chosen, _ = world.do(ledger(world).allowed(nodes("a", "b"), 3))
        assert len(chosen) == 1


@settings(deadline=None)
@given(st.lists(st.tuples(st.integers(0, 7200), st.integers(1, 20)), max_size=20))
def test_times_survive_being_written(booked: list[tuple[int, int]]):
    times = ActionTimes()
    for second, count in sorted(booked):
        times = times.after(count, NOW + timedelta(seconds=second))
    assert ActionTimes.parse(times.text()) == times
    last = NOW + timedelta(seconds=max((second for second, _ in booked), default=0))
    recent = sum(count for second, count in booked if NOW + timedelta(seconds=second) > last - timedelta(hours=1))
    assert times.in_last_hour(last) == recent
