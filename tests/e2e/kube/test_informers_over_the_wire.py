"""Informers on a real connection: sync, changes, and a network that cuts, stalls and half-closes it."""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec
import pytest

from plimsoll.kube.informer import Added, BecameUnreadable, Deleted, Informer, InformerSettings, Key, Updated
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.core import ConfigMap
from plimsoll.runtime.backoff import Backoff
from tests.e2e.kube.clusters import CLOCK, ENTROPY, connected, until_so
from tests.e2e.kube.custom_objects import defined_gauges, gauge
from tests.e2e.kube.pods_and_maps import config_map, make_maps
from tests.e2e.kube.tcp_proxies import proxied
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client

pytestmark = pytest.mark.asyncio

BRISK = InformerSettings(page_size=2, reopen_after_s=0.05, backoff=Backoff(initial_s=0.05, cap_s=0.5))
STREAMING = msgspec.structs.replace(BRISK, uses_watch_list=True)
IMPATIENT = msgspec.structs.replace(BRISK, silence_s=1.0)

both_ways = pytest.mark.parametrize("settings", [BRISK, STREAMING], ids=["pages", "watch-list"])


@asynccontextmanager
async def running(informer: Informer[Any]) -> AsyncIterator[None]:
    task = asyncio.create_task(informer.run())
    try:
        async with asyncio.timeout(PATIENCE_S):
            await informer.wait_until_synced()
        yield
    finally:
        task.cancel()
        await asyncio.wait((task,))
    assert task.cancelled()


def informer_of(client: Client, of: Any, namespace: str, settings: InformerSettings = BRISK) -> Informer[Any]:
    selection = Selection(namespace=namespace)
    return Informer(client, of, selection=selection, settings=settings, clock=CLOCK, entropy=ENTROPY)


def names(informer: Informer[Any]) -> set[str]:
    """Without what a cluster puts into every namespace by itself."""
    return {cached.metadata.name for cached in informer.cache.list()} - {"kube-root-ca.crt"}


@both_ways
async def test_the_cache_is_complete_once_it_has_synced(client: Client, namespace: str, settings: InformerSettings):
    made = {f"map-{number}" for number in range(5)}
    await make_maps(client, namespace, sorted(made))
    informer = informer_of(client, ConfigMap, namespace, settings)
    async with running(informer):
        assert names(informer) == made
        assert informer.cache.get("map-3", namespace) is not None
        assert informer.status.trouble == ""


@both_ways
async def test_changes_are_reported_in_order(client: Client, namespace: str, settings: InformerSettings):
    await make_maps(client, namespace, ["old"])
    informer = informer_of(client, ConfigMap, namespace, settings)
    heard: list[Any] = []
    informer.add_handler(heard.append, name="test")

    def reported(name: str) -> list[type]:
        return [type(change) for change in heard if change.key == Key(namespace, name)]

    async with running(informer):
        await until_so(lambda: reported("old") == [Added])
        await client.create(ConfigMap, config_map("new"), namespace=namespace)
        await until_so(lambda: reported("new") == [Added])
        await client.merge_patch(ConfigMap, "new", {"data": {"colour": "red"}}, namespace=namespace)
        await until_so(lambda: reported("new") == [Added, Updated])
        await client.delete(ConfigMap, "new", namespace=namespace)
        await until_so(lambda: reported("new") == [Added, Updated, Deleted])
        (last,) = [change for change in heard if isinstance(change, Deleted)]
        assert last.last.data == {"colour": "red"}
        assert not last.is_inferred
        assert names(informer) == {"old"}


async def test_an_index_follows_the_objects(client: Client, namespace: str):
    await client.create(ConfigMap, config_map("one", colour="red"), namespace=namespace)
    informer = informer_of(client, ConfigMap, namespace)
    informer.add_index("colour", lambda config_map: [config_map.data["colour"]] if "colour" in config_map.data else [])
    async with running(informer):
        assert [cached.metadata.name for cached in informer.cache.list_by_index("colour", "red")] == ["one"]
        await client.merge_patch(ConfigMap, "one", {"data": {"colour": "blue"}}, namespace=namespace)
        await until_so(lambda: informer.cache.list_by_index("colour", "blue"))
        assert informer.cache.list_by_index("colour", "red") == ()


@both_ways
async def test_an_object_that_cannot_be_read_is_reported_and_hides_no_other(
    client: Client, namespace: str, settings: InformerSettings
):
    async with defined_gauges(client) as gauges:
        raw = {**gauge("odd", "high"), "apiVersion": gauges.api_version, "kind": gauges.kind}
        await client.call(client.calls.build_post(gauges.build_path(namespace), msgspec.json.encode(raw), {}))
        await client.create(gauges, gauge("good"), namespace=namespace)
        informer = informer_of(client, gauges, namespace, settings)
        heard: list[Any] = []
        informer.add_handler(heard.append, name="test")
        odd = Key(namespace, "odd")
        async with running(informer):
            assert names(informer) == {"good"}
            assert set(informer.cache.bad) == {odd}
            await client.create(gauges, gauge("better"), namespace=namespace)
            await until_so(lambda: names(informer) == {"good", "better"})
            patch = [{"op": "replace", "path": "/spec/level", "value": 5}]
            await client.patch_json(gauges, "odd", patch, namespace=namespace)
            await until_so(lambda: names(informer) == {"good", "better", "odd"})
            await until_so(lambda: [type(change) for change in heard if change.key == odd] == [BecameUnreadable, Added])
            assert not informer.cache.bad


# ---- a network that fails


async def test_after_a_cut_connection_nothing_is_missing(access: Access, client: Client, namespace: str):
    await make_maps(client, namespace, ["before", "doomed"])
    async with proxied(access) as (proxy, through), connected(through) as shaky:
        informer = informer_of(shaky, ConfigMap, namespace)
        async with running(informer):
            proxy.refuse()
            assert proxy.cut() >= 1
            await client.create(ConfigMap, config_map("during"), namespace=namespace)
            await client.delete(ConfigMap, "doomed", namespace=namespace)
            await until_so(lambda: informer.status.trouble != "")
            proxy.accept()
            await until_so(lambda: names(informer) == {"before", "during"})
            await until_so(lambda: informer.status.trouble == "")
            assert informer.status.reconnects >= 1
            assert informer.status.relists == 0, "a resumed watch needs no list"


async def test_connections_that_are_cut_again_and_again_lose_nothing(access: Access, client: Client, namespace: str):
    async with proxied(access) as (proxy, through), connected(through) as shaky:
        informer = informer_of(shaky, ConfigMap, namespace)
        async with running(informer):
            for number in range(5):
                await client.create(ConfigMap, config_map(f"map-{number}"), namespace=namespace)
                proxy.cut()
            await until_so(lambda: names(informer) == {f"map-{number}" for number in range(5)})


async def test_a_half_closed_connection_is_noticed(access: Access, client: Client, namespace: str):
    async with proxied(access) as (proxy, through), connected(through) as shaky:
        informer = informer_of(shaky, ConfigMap, namespace)
        async with running(informer):
            proxy.half_close()
            await client.create(ConfigMap, config_map("after"), namespace=namespace)
            await until_so(lambda: names(informer) == {"after"})


async def test_a_connection_that_went_silent_is_given_up(access: Access, client: Client, namespace: str):
    async with proxied(access) as (proxy, through), connected(through) as shaky:
        informer = informer_of(shaky, ConfigMap, namespace, IMPATIENT)
        async with running(informer):
            await client.create(ConfigMap, config_map("before"), namespace=namespace)
            await until_so(lambda: names(informer) == {"before"})  # so the watch is open
            proxy.swallow()
            await client.create(ConfigMap, config_map("after"), namespace=namespace)
            await until_so(lambda: names(informer) == {"before", "after"})
            assert informer.status.reconnects >= 1


async def test_a_stalled_connection_that_moves_again_delivers(access: Access, client: Client, namespace: str):
    async with proxied(access) as (proxy, through), connected(through) as shaky:
        informer = informer_of(shaky, ConfigMap, namespace)
        async with running(informer):
            proxy.stall()
            await client.create(ConfigMap, config_map("after"), namespace=namespace)
            proxy.move()
            await until_so(lambda: names(informer) == {"after"})


async def test_a_stopped_informer_leaves_no_connection_behind(access: Access, namespace: str):
    async with proxied(access) as (proxy, through):
        async with connected(through) as client, running(informer_of(client, ConfigMap, namespace)):
            assert proxy.open_connections >= 1
        await until_so(lambda: proxy.open_connections == 0)
