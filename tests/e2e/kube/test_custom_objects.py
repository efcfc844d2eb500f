"""The status, finalizers and undecodable objects on a resource that is defined for the test."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest
import pytest_asyncio

from plimsoll.kube.controller.finalizers import Finalizer, FinalizerOutcome
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.requests.options import Selection
from tests.e2e.kube.clusters import exists
from tests.e2e.kube.custom_objects import defined_gauges, gauge

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.client import Client
    from plimsoll.objects.api.resource import Resource

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def gauges(client: Client) -> AsyncIterator[Resource]:
    async with defined_gauges(client) as resource:
        yield resource


async def test_the_status_is_written_by_its_own_part_only(client: Client, namespace: str, gauges: Resource):
    await client.create(gauges, gauge("one"), namespace=namespace)
    patch = {"spec": {"level": 7}, "status": {"seen": "yes"}}
    by_status: Any = await client.merge_patch(gauges, "one", patch, namespace=namespace, subresource="status")
    assert (by_status.spec.level, by_status.status.seen) == (1, "yes")
    by_object: Any = await client.merge_patch(gauges, "one", {"status": {"seen": "no"}}, namespace=namespace)
    assert by_object.status.seen == "yes"


async def test_an_object_the_struct_cannot_hold_is_distinguished(client: Client, namespace: str, gauges: Resource):
    await client.create(gauges, gauge("good", 3), namespace=namespace)
    with pytest.raises(UnreadableAnswer, match="level"):
        await client.create(gauges, gauge("odd", "high"), namespace=namespace)
    listed: Any = await client.list(gauges, Selection(namespace=namespace))
    assert [item.metadata.name for item in listed.items] == ["good"]
    assert [(bad_object.name, bad_object.namespace) for bad_object in listed.bad] == [("odd", namespace)]


async def test_a_finalizer_keeps_an_object_until_it_is_removed(client: Client, namespace: str, gauges: Resource):
    made: Any = await client.create(gauges, gauge("one"), namespace=namespace)
    finalizer, late = Finalizer(client, "plimsoll.example/clean-up"), Finalizer(client, "plimsoll.example/late")
    try:
        assert await finalizer.add(gauges, made.metadata) is FinalizerOutcome.CHANGED
        assert (
            await finalizer.add(gauges, made.metadata) is FinalizerOutcome.UNCHANGED
        )  # from metadata that is out of date
        await client.delete(gauges, "one", namespace=namespace)
        leaving: Any = await client.get(gauges, "one", namespace=namespace)
        assert leaving.metadata.deletion_timestamp is not None
        assert await late.add(gauges, leaving.metadata) is FinalizerOutcome.BEING_DELETED
        assert await finalizer.remove(gauges, leaving.metadata) is FinalizerOutcome.CHANGED
        assert not await exists(client, gauges, "one", namespace=namespace)
        assert await finalizer.remove(gauges, leaving.metadata) is FinalizerOutcome.GONE
    finally:
        # Whatever failed, nothing may keep the definition and the namespace from going.
        with suppress(NotFound):
            await client.merge_patch(gauges, "one", {"metadata": {"finalizers": None}}, namespace=namespace)
