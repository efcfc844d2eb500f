"""Changes that name the target they start from: done once, and only if no other client changed it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.objects.api.simulated_cloud_errors import CloudRefused
from tests.local.cloud.builders import CloudCluster

if TYPE_CHECKING:
    from collections.abc import Coroutine, Iterable

    from plimsoll.kube.transport import Request, Response, Transport


def test_growth_from_the_expected_size_happens_once():
    with CloudCluster() as world:
        world.group("g", target=3)
        for _ in range(2):
            world.do(world.cloud.increase_size("g", 2, expected=3))
        assert world.get_group().spec.target == 5


def test_growth_from_another_size_is_refused():
    with CloudCluster() as world:
        world.group("g", target=4)
        with pytest.raises(CloudRefused, match="target of node group g is 4, not 3"):
            world.do(world.cloud.increase_size("g", 2, expected=3))
        assert world.get_group().spec.target == 4


def test_atomic_growth_that_was_done_needs_no_room_again():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 2}]) as world:
        world.group("g", atomic=True)
        for _ in range(2):
            world.do(world.cloud.atomic_increase_size("g", 2, expected=0))
        assert world.get_group().spec.target == 2


def test_shrinking_from_the_expected_size_happens_once():
    with CloudCluster() as world:
        world.group("g", target=3, bootSeconds=99)
        for _ in range(2):
            world.do(world.cloud.decrease_target_size("g", -1, expected=3))
        assert world.get_group().spec.target == 2


def test_nodes_that_are_deleted_one_by_one_at_the_same_time_all_go():
    with CloudCluster(through=SlowTransport) as world:
        world.group("g", target=20, max=20)
        world.after(1)
        world.do(together(world.cloud.delete_nodes("g", [name]) for name in world.nodes()))
        assert world.get_group().spec.target == 0


class SlowTransport:
    """A server whose answers take so long that others ask meanwhile."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def send(self, call: Request) -> Response:
        await asyncio.sleep(0.01)
        return await self._transport.send(call)

    async def aclose(self) -> None:
        await self._transport.aclose()


async def together(calls: Iterable[Coroutine[Any, Any, None]]) -> None:
    async with asyncio.TaskGroup() as group:
        for coroutine in calls:
            group.create_task(coroutine)
