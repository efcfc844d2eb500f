"""However much comes at once, everybody else on the loop has a turn after a bounded part of it."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING, Any

from plimsoll.kube.informer import Informer
from plimsoll.kube.informer.reflector import lister
from plimsoll.kube.informer.reflector.list_decoder import ListReader
from plimsoll.kube.transport import Response
from plimsoll.runtime.cooperative_yield import BYTES_AT_ONCE, OBJECTS_AT_ONCE
from tests.kube.informer.widget_server import Widget, WidgetCluster, widget

if TYPE_CHECKING:
    import pytest


def item(number: int, *, padding: int = 0) -> dict[str, Any]:
    shown = widget(f"w{number}")
    shown["metadata"] |= {"namespace": "here", "uid": f"u{number}", "resourceVersion": str(number + 1)}
    shown["metadata"]["annotations"] = {"padding": "x" * padding}
    return shown


class FloodingTransport:
    """A server that answers everything at once, whatever limit it is asked for."""

    def __init__(self, items: list[dict[str, Any]], frames: bytes = b"") -> None:
        body = {"kind": "WidgetList", "metadata": {"resourceVersion": str(len(items) + 1)}, "items": items}
        self._body = json.dumps(body, separators=(",", ":")).encode()
        self._chunks = [frames] if frames else []

    async def send(self, call: Any) -> Response:
        return Response(status=200, stream=self) if call.is_stream else Response(status=200, body=self._body)

    def __aiter__(self) -> FloodingTransport:
        return self

    async def __anext__(self) -> bytes:
        if self._chunks:
            return self._chunks.pop()
        await asyncio.get_running_loop().create_future()
        raise StopAsyncIteration

    async def aclose(self) -> None:
        """Nothing is held."""


async def greatest_step(informer: Informer[Any], *, until: int) -> int:
    """The most objects that came into the cache between two steps of another task."""
    greatest, before = 0, len(informer.cache)
    while before < until:
        await asyncio.sleep(0)
        greatest, before = max(greatest, len(informer.cache) - before), len(informer.cache)
    return greatest


def informer_of(world: WidgetCluster, flood: FloodingTransport) -> Informer[Any]:
    client = world.client_through(flood)
    return Informer(client, Widget, clock=world.clock, entropy=world.entropy)


def test_one_answer_with_everything_in_it_is_read_in_portions():
    items = [item(number, padding=2000) for number in range(5000)]
    with WidgetCluster() as world:
        informer = informer_of(world, FloodingTransport(items))
        world.run.spawn(informer.run())
        step = world.run.run_until(greatest_step(informer, until=len(items)))
        assert step * 2000 <= BYTES_AT_ONCE


def test_a_page_is_put_into_the_cache_in_portions():
    items = [item(number) for number in range(2 * OBJECTS_AT_ONCE + 1)]
    with WidgetCluster() as world:
        informer = informer_of(world, FloodingTransport(items))
        world.run.spawn(informer.run())
        assert world.run.run_until(greatest_step(informer, until=len(items))) <= OBJECTS_AT_ONCE


def test_others_have_a_turn_between_reading_a_page_and_putting_it_into_the_cache(monkeypatch: pytest.MonkeyPatch):
    reported: list[str] = []

    class RecordingReader(ListReader[Any]):
        def read_portions(self, **sizes: int) -> Any:
            for portion in super().read_portions(**sizes):
                reported.append("read")
                yield portion

    async def others(informer: Informer[Any]) -> None:
        while not len(informer.cache):
            reported.append("others")
            await asyncio.sleep(0)

    monkeypatch.setattr(lister, "ListReader", RecordingReader)
    with WidgetCluster() as world:
        informer = informer_of(world, FloodingTransport([item(number) for number in range(100)]))
        world.run.spawn(informer.run())
        world.run.run_until(others(informer))
    assert reported[-2:] == ["read", "others"]


def test_a_burst_of_events_is_read_in_portions():
    frames = b"".join(json.dumps({"type": "ADDED", "object": item(number)}).encode() + b"\n" for number in range(3000))
    with WidgetCluster() as world:
        informer = informer_of(world, FloodingTransport([], frames))
        world.run.spawn(informer.run())
        step = world.run.run_until(greatest_step(informer, until=2990))
        assert step <= OBJECTS_AT_ONCE


def test_a_handler_that_never_waits_lets_others_run():
    with WidgetCluster() as world:
        reported: list[Any] = []
        informer = informer_of(world, FloodingTransport([item(number) for number in range(1000)]))
        informer.add_handler(reported.append, name="all")
        world.run.spawn(informer.run())

        async def greatest() -> int:
            most, before = 0, 0
            while before < 1000:
                await asyncio.sleep(0)
                most, before = max(most, len(reported) - before), len(reported)
            return most

        assert world.run.run_until(greatest()) <= 32


def test_objects_missing_from_a_list_are_deleted_in_portions():
    with WidgetCluster() as world:
        flood = FloodingTransport([item(number) for number in range(2000)])
        informer = informer_of(world, flood)
        running = world.run.spawn(informer.run())
        world.run.run_until(informer.wait_until_synced())
        running.cancel()
        world.run.settle()
        flood._body = FloodingTransport([])._body

        async def greatest() -> int:
            most, before = 0, len(informer.cache)
            while before:
                await asyncio.sleep(0)
                most, before = max(most, before - len(informer.cache)), len(informer.cache)
            return most

        world.run.spawn(informer.run())
        assert world.run.run_until(greatest()) <= OBJECTS_AT_ONCE
