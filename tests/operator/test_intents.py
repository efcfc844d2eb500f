"""The write-ahead order, with a crash after every call: nothing stays half done."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.operator.intents import StoredIntent, recover_all
from tests.faults.sweeps import sweep_crashes

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.runtime.clocks import VirtualClock

SIZE_AFTER = 5


class IntentCluster:
    """What outlives a process: a stored intent, and two groups that must grow together."""

    def __init__(self) -> None:
        self.intent: int | None = None
        self.sizes = {"a": 3, "b": 3}
        self.is_served = False
        self.untold: list[str] = []
        """Changes that no intent announced."""

    async def store(self, intent: int | None) -> None:
        self.intent = intent

    async def resize(self, group: str, size: int) -> None:
        if self.intent != size:
            self.untold.append(group)
        self.sizes[group] = size

    async def mark_served(self) -> None:
        self.is_served = True


class IntentController:
    """Recovers first, then serves what is not served."""

    def __init__(self, cluster: IntentCluster, port: Any) -> None:
        self._cluster = cluster
        self._port = port

    async def run(self) -> None:
        intent = StoredIntent[int](self._port.store, self._cluster.intent)
        await intent.recover(self._finish)
        if not self._cluster.is_served:
            await intent.carry_out(SIZE_AFTER, lambda: self._finish(SIZE_AFTER))

    async def _finish(self, size: int) -> bool:
        for group, now in self._cluster.sizes.items():
            if now != size:
                await self._port.resize(group, size)
        await self._port.mark_served()
        return True


def test_a_crash_after_any_call_leaves_no_group_behind():
    async def build_world(_clock: VirtualClock) -> IntentCluster:
        return IntentCluster()

    def build_instance(cluster: IntentCluster, through: Callable[[Any], Any]) -> IntentController:
        return IntentController(cluster, through(cluster))

    async def run(controller: IntentController) -> None:
        await controller.run()

    async def check(cluster: IntentCluster) -> None:
        assert cluster.sizes == {"a": SIZE_AFTER, "b": SIZE_AFTER}
        assert cluster.is_served
        assert cluster.intent is None
        assert cluster.untold == []

    crash_points = sweep_crashes(build_world=build_world, build_instance=build_instance, run=run, check=check)
    assert crash_points == 5


@pytest.mark.asyncio
async def test_an_action_that_fails_leaves_its_intent():
    cluster = IntentCluster()
    intent = StoredIntent[int](cluster.store)

    async def fail() -> None:
        raise TimeoutError

    with pytest.raises(TimeoutError):
        await intent.carry_out(7, fail)
    assert (cluster.intent, intent.current) == (7, 7)


@pytest.mark.asyncio
async def test_an_intent_that_cannot_be_stored_keeps_the_action_from_starting():
    async def refuse(_intent: int | None) -> None:
        raise PermissionError

    acted: list[str] = []

    async def act() -> None:
        acted.append("act")

    intent = StoredIntent[int](refuse)
    with pytest.raises(PermissionError):
        await intent.carry_out(7, act)
    assert (acted, intent.current) == ([], None)


@pytest.mark.asyncio
async def test_what_is_not_finished_stays_and_does_not_stop_the_others():
    tried: list[str] = []

    async def finish(name: str) -> bool:
        tried.append(name)
        return name != "b"

    recovered = await recover_all(["a", "b", "c"], finish)
    assert tried == ["a", "b", "c"]
    assert (recovered.finished, recovered.unfinished) == (("a", "c"), ("b",))


@pytest.mark.asyncio
async def test_recovery_clears_only_what_is_finished():
    cluster = IntentCluster()
    cluster.intent = 4
    intent = StoredIntent[int](cluster.store, cluster.intent)

    async def not_yet(_intent: int) -> bool:
        return False

    async def done(_intent: int) -> bool:
        return True

    assert not await intent.recover(not_yet)
    assert cluster.intent == 4
    assert await intent.recover(done)
    assert cluster.intent is None
