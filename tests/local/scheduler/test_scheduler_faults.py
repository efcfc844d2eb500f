"""The server refuses a binding, loses an answer, or another writer was faster."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.kube.errors import AnswerLost
from plimsoll.local.scheduler.writes.claims import ClaimWrites
from plimsoll.objects.api.storage import PersistentVolumeClaim
from tests.kube.embedded_api import status_reply
from tests.local.scheduler.builders import CLAIMS, PODS, SchedulerCluster

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    Binding = Callable[[Any, Any], Awaitable[Any]]


class BindingFaults:
    """A transport on which bindings go another way."""

    def __init__(self, *ways: Binding) -> None:
        self._ways = [*ways]
        self.tried = 0

    def wrap(self, port: Any) -> Any:
        outer = self

        class Transport:
            async def send(self, call: Any) -> Any:
                if not call.path.endswith("/binding"):
                    return await port.send(call)
                outer.tried += 1
                return await (outer._ways.pop(0) if outer._ways else _through)(port, call)

            async def aclose(self) -> None:
                await port.aclose()

        return Transport()


async def _through(port: Any, call: Any) -> Any:
    return await port.send(call)


async def refused(_port: Any, _call: Any) -> Any:
    return status_reply(403, "no bindings today", reason="Forbidden")


async def lost(port: Any, call: Any) -> Any:
    await port.send(call)
    raise AnswerLost("the line is dead")


def test_a_refused_binding_is_reported_and_tried_again_after_the_back_off():
    bindings = BindingFaults(refused)
    with SchedulerCluster(through=bindings.wrap) as world:
        world.node("n1")
        world.pod("p", cpu="1")

        condition = world.condition("p")
        assert (condition["status"], condition["reason"]) == ("False", "SchedulerError")
        assert condition["message"] == "binding rejected: no bindings today"
        world.run.advance_by(0.5)
        assert bindings.tried == 1
        world.run.advance_by(0.5)
        assert world.node_of("p") == "n1"
        assert world.reasons("p") == ["FailedScheduling", "Scheduled"]


def test_room_counted_for_a_pod_that_was_not_bound_is_given_back():
    with SchedulerCluster(through=BindingFaults(refused).wrap) as world:
        world.node("n1")
        world.pod("p", cpu="3")

        world.pod("q", cpu="3")

        assert (world.node_of("p"), world.node_of("q")) == ("", "n1")


def test_a_binding_whose_answer_was_lost_is_not_made_again():
    bindings = BindingFaults(lost)
    with SchedulerCluster(through=bindings.wrap) as world:
        world.node("n1")
        world.pod("p", cpu="1")
        world.run.advance_by(60)

        assert (world.node_of("p"), bindings.tried) == ("n1", 1)
        assert world.reasons("p") == ["Scheduled"]


def test_a_pod_that_another_scheduler_placed_is_left_where_it_is():
    async def stolen(port: Any, call: Any) -> Any:
        await port.send(call._replace(body=call.body.replace(b'"n1"', b'"n2"')))
        return await port.send(call)

    with SchedulerCluster(through=BindingFaults(stolen).wrap) as world:
        world.node("n1")
        world.node("n2", unschedulable=True)

        world.pod("p", cpu="3")
        world.run.advance_by(60)

        assert world.node_of("p") == "n2"
        world.pod("q", cpu="3")
        assert world.node_of("q") == "n1"


def test_a_pod_deleted_before_it_is_bound_is_forgotten():
    async def deleted(port: Any, call: Any) -> Any:
        await port.send(call._replace(method="DELETE", path=f"{PODS}/p", body=b""))
        return await port.send(call)

    with SchedulerCluster(through=BindingFaults(deleted).wrap) as world:
        world.node("n1")
        world.pod("p", cpu="3")
        assert world.placements() == {}

        world.pod("q", cpu="3")

        assert world.node_of("q") == "n1"


def test_a_choice_that_was_reported_before_is_no_reason_to_give_up_the_place():
    """Two attempts may be under way for one pod: each change of its claim makes it be looked at again."""
    asks = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "wait"}
    with SchedulerCluster(stepped=True) as world:
        world.made(CLAIMS, {"metadata": {"name": "c"}, "spec": asks})
        client = world.connect("kube-scheduler")
        writes = ClaimWrites(client)
        seen = world.run.run_until(client.get(PersistentVolumeClaim, "c", namespace="here"))
        reported = [world.run.run_until(writes.select_node(seen, node, None)) for node in ("n1", "n1", "n2")]
        assert reported == [True, True, False]
        annotations = world.ask("GET", f"{CLAIMS}/c").body["metadata"]["annotations"]
        assert annotations["volume.kubernetes.io/selected-node"] == "n1"
