"""The alarm of a watch is set in floats: one that rings a hair too early must not ring for ever."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.api.pods import Pod
from tests.kube.embedded_api import EmbeddedApi

if TYPE_CHECKING:
    from plimsoll.kube.client import Client


async def _until_it_ends(client: Client) -> int:
    stream = await client.watch(Pod, resource_version="1", timeout_seconds=7)
    return len([chunk async for chunk in stream])


def test_a_watch_ends_at_its_time_whenever_it_was_opened() -> None:
    with EmbeddedApi() as world:
        for _ in range(5):
            opened_s = world.run.clock.monotonic_s()
            world.do(_until_it_ends(world.client))
            assert round(world.run.clock.monotonic_s() - opened_s, 5) == 7
            # From here on 7 s are, in nanoseconds, an instant whose float is smaller than the sum of the floats.
            world.run.advance_by(0.403092732)
