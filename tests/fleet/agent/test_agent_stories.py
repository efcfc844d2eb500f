"""Random stories of requests, sizes, deletions, lists that are late, and crashes: what holds at every moment."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from hypothesis import given, settings
from hypothesis import strategies as st

from tests.effort import share_of
from tests.fleet.agent.agent_world import AgentWorld
from tests.fleet.agent.control_planes import build_item

if TYPE_CHECKING:
    from tests.fleet.agent.agent_world import RunningAgent

IDS = ("a", "b", "c")
MAX_UNITS = 3
STEPS = st.one_of(
    st.tuples(st.just("place"), st.sampled_from(IDS), st.integers(1, 3)),
    st.tuples(st.just("delete"), st.sampled_from(IDS)),
    st.tuples(st.just("forget"), st.sampled_from(IDS)),
    st.tuples(st.just("operate")),
    st.tuples(st.just("restart")),
    st.tuples(st.just("empty")),
    st.tuples(st.just("away")),
)


class Story:
    """The control plane's wishes, and what may never be."""

    def __init__(self, world: AgentWorld) -> None:
        self.world = world
        self.wanted: dict[str, Any] = {}
        self.made: dict[str, str] = {}
        """The uid of each Kafka that was seen, by namespace."""
        self.deleted: set[str] = set()
        self.agent: RunningAgent = world.start_agent()

    def take(self, step: tuple[Any, ...]) -> None:
        match step:
            case "place", kafka_id, units if kafka_id not in self.deleted:
                self.wanted[kafka_id] = build_item(kafka_id, units=units)
            case "delete", kafka_id if kafka_id in self.wanted:
                self.deleted.add(kafka_id)
                self.wanted[kafka_id] = build_item(kafka_id, deleted=True)
            case "forget", kafka_id:
                self.wanted.pop(kafka_id, None)
            case ("operate",):
                self.world.operate()
            case ("restart",):
                self.agent.kill()
                self.agent = self.world.start_agent()
            case ("away",):
                self.world.control_plane.is_away = not self.world.control_plane.is_away
            case ("empty",):
                self.world.list_items().pass_polls()
        self.world.list_items(*self.wanted.values())
        for _ in range(3):
            self.world.run.advance_by(7)
            self.check()

    def check(self) -> None:
        claims = self.world.get_claims()
        assert sum(claims.values()) <= MAX_UNITS
        present = {kafka["metadata"]["namespace"]: kafka["metadata"]["uid"] for kafka in self.world.list_kafkas()}
        assert set(present) <= set(claims), "no brokers without a claim"
        for namespace, uid in self.made.items():
            if namespace.removeprefix("kafka-") not in self.deleted:
                assert present.get(namespace) == uid, f"{namespace} was not deleted, and is gone"
        self.made |= present


@given(steps=st.lists(STEPS, min_size=3, max_size=10))
@settings(max_examples=share_of(40), deadline=None)
def test_claims_stay_within_the_room_and_only_what_is_deleted_goes(steps: list[tuple[Any, ...]]):
    with AgentWorld() as world:
        world.control_plane.max_nodes = {"standard": 3 * MAX_UNITS}
        story = Story(world)
        for step in steps:
            story.take(step)
        # At last the control plane is there, and deletes everything.
        world.control_plane.is_away = False
        known = {*story.wanted, *(namespace.removeprefix("kafka-") for namespace in world.list_namespaces())}
        world.list_items(*(build_item(kafka_id, deleted=True) for kafka_id in sorted(known))).pass_polls(5)
        assert world.list_namespaces() == []
        assert world.get_claims() == {}
