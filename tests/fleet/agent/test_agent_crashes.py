"""The agent crashes after every write, to the cluster or to its control plane, and the next one ends the same story."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.fleet.agent.planning.intake import LISTS_IN_A_ROW
from tests.effort import choose_calls
from tests.faults import CrashAfter, Crashed
from tests.fleet.agent.agent_world import AgentWorld
from tests.fleet.agent.control_planes import build_item, build_reserved_item

if TYPE_CHECKING:
    from collections.abc import Callable


class CrashingWrites:
    """A port whose writes are counted. Reads go past the count, until the process is dead."""

    def __init__(self, port: Any, crash: CrashAfter) -> None:
        self._port = port
        self._writing = crash.wrap(port)
        self._crash = crash

    async def send(self, request: Any) -> Any:
        if request.method != "GET":
            return await self._writing.send(request)
        if self._crash.struck is not None:
            raise Crashed("the process is dead")
        return await self._port.send(request)

    async def aclose(self) -> None:
        await self._port.aclose()


class CrashingStory:
    """An instance comes, grows, shrinks and goes, with a reserved one beside it. `struck`: whether the crash came."""

    def __init__(self, world: AgentWorld, crash: CrashAfter) -> None:
        self._world = world
        self._crash = crash
        self._is_second = False

    def take(self, step: Callable[[], object]) -> None:
        """A step; if the agent crashes in it, another one starts and the step is taken again."""
        try:
            step()
        except BaseException:
            if self._crash.struck is None or self._is_second:
                raise
            self._is_second = True
            self._world.start_agent()
            step()

    def run(self) -> None:
        world, held = self._world, {"kafka-a": 1}
        world.list_items(build_item("a"), build_reserved_item(1))
        self.take(lambda: self._is_second or world.start_agent(through=lambda port: CrashingWrites(port, self._crash)))
        self.take(lambda: world.pass_polls(2))
        self.take(world.operate)
        self.take(world.run_reserved)
        assert world.get_last("a")["status"] == "True"
        assert world.get_claims() == held
        world.list_items(build_item("a", units=2))
        self.take(lambda: world.pass_polls(LISTS_IN_A_ROW + 1))
        assert world.count_replicas("kafka-a")["brokers"] == 6
        assert world.get_claims() == {"kafka-a": 2}
        assert world.list_namespaces() == ["kafka-a"]
        self.take(world.operate)
        world.list_items(build_item("a"))
        self.take(lambda: world.pass_polls(2))
        self.take(world.operate)
        self.take(world.pass_polls)
        assert world.get_claims() == held
        world.list_items(build_item("a", deleted=True))
        self.take(lambda: world.pass_polls(3))
        assert world.get_last("a")["reason"] == "Deleted"
        assert world.get_claims() == {}
        assert world.list_namespaces() == []


def test_a_crash_after_any_write_leads_to_the_same_end():
    struck = 0
    for number in choose_calls(1_000):
        crash = CrashAfter(number)
        with AgentWorld() as world:
            CrashingStory(world, crash).run()
        if crash.struck is None:
            break
        struck += 1
    else:
        raise AssertionError("the sweep did not reach the end of the story")
    assert struck > 10
