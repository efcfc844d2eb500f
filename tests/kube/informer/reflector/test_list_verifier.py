"""A list that misses objects which exist, or that is old, is not believed; a list that misses deleted ones is."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.kube.informer.reflector.list_verifier import is_small_loss, spread
from plimsoll.kube.transport import Response
from tests.faults.faulty_transport import FaultyTransport, Read, TransportFaults
from tests.faults.lies import Lie
from tests.kube.informer.widget_server import WidgetCluster, known

if TYPE_CHECKING:
    from plimsoll.kube.informer.informer import Informer
    from plimsoll.kube.transport import Request, Transport
    from tests.golden.reviewed_sentences import ReviewedSentences
    from tests.kube.informer.widget_server import Widget

NAMES = "abcdefghij"
LIST = Read("list", "widgets")


class FaultyWidgets(WidgetCluster):
    """Ten widgets behind falsified answers."""

    def __init__(self) -> None:
        super().__init__()
        self.faults = TransportFaults(self.clock)
        self.client = self.client_through(FaultyTransport(self.line, self.faults))

    def follow(self) -> Informer[Widget]:
        for name in NAMES:
            self.put(name)
        return self.running()


@pytest.mark.parametrize("lie", [Lie.HALF, Lie.EMPTY])
def test_objects_that_a_list_misses_and_that_exist_stay(lie: Lie):
    with FaultyWidgets() as world:
        informer = world.follow()
        world.faults.start(LIST, lie)
        world.run.advance_by(5)
        assert known(informer) == world.truth()
        assert "of which" in informer.status.contradiction
        world.put("k")
        world.run.settle()
        assert known(informer) == world.truth(), "the watch goes on"
        world.faults.stop()
        world.run.advance_by(200)
        assert informer.status.contradiction == ""
        assert known(informer) == world.truth()


def test_objects_that_were_deleted_are_gone_after_a_list():
    with FaultyWidgets() as world:
        informer = world.follow()
        world.run.run_until(world.line.break_all())
        world.line.is_down = True
        for name in NAMES[:8]:
            world.delete(name)
        world.compact()
        world.line.is_down = False
        world.run.advance_by(5)
        assert known(informer) == world.truth()
        assert informer.status.contradiction == ""


def test_a_list_that_is_older_than_what_is_known_is_not_taken():
    with FaultyWidgets() as world:
        informer = world.follow()
        world.put("a", 7)
        world.run.settle()
        world.faults.start(LIST, Lie.STALE)
        world.run.advance_by(20)
        assert known(informer) == world.truth()
        assert "older than" in informer.status.trouble
        world.faults.stop()
        world.run.advance_by(60)
        assert informer.status.trouble == ""
        assert known(informer) == world.truth()


class NoSingleReads:
    """A server whose role does not allow reads of single objects."""

    def __init__(self, inner: Transport) -> None:
        self._inner = inner

    async def send(self, call: Request) -> Response:
        if call.method == "GET" and call.path.rsplit("/", 1)[-1] in NAMES:
            return Response(status=403, body=b'{"kind":"Status","reason":"Forbidden","code":403}')
        return await self._inner.send(call)

    async def aclose(self) -> None:
        await self._inner.aclose()


def test_without_permission_for_single_reads_a_second_list_must_agree(reviewed: ReviewedSentences):
    with FaultyWidgets() as world:
        world.client = world.client_through(NoSingleReads(FaultyTransport(world.line, world.faults)))
        informer = world.follow()
        world.faults.start(LIST, Lie.HALF)
        world.run.advance_by(5)
        assert known(informer) == world.truth()
        reviewed(informer.status.contradiction)
        world.faults.stop()
        world.run.advance_by(200)
        assert informer.status.contradiction == ""
        assert known(informer) == world.truth()


def test_a_small_loss_is_one_object_or_a_tenth():
    assert is_small_loss(1, 2)
    assert not is_small_loss(2, 10)
    assert is_small_loss(10, 100)
    assert not is_small_loss(11, 100)


def test_reads_of_single_objects_are_few_and_spread_over_all():
    keys = [("", str(number)) for number in range(1000)]
    assert [key[1] for key in spread(keys, 4)] == ["0", "250", "500", "750"]
    assert spread(keys[:3], 4) == keys[:3]
