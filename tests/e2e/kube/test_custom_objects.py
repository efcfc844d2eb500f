"""Conditions, finalizers and odd objects on a resource that is defined for the test."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from plimsoll.kube.conditions import ConditionsWriter, Subject, SubjectGone, Told, Unchanged
from plimsoll.kube.controller.finalizers import Finalizer, Kept
from plimsoll.kube.errors import NotFound, UnreadableAnswer
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.meta import Condition
from tests.e2e.kube.clusters import CLOCK, exists
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
    by_status = await client.merge_patch(gauges, "one", patch, namespace=namespace, subresource="status")
    assert (by_status.spec.level, by_status.status.seen) == (1, "yes")
    by_object = await client.merge_patch(gauges, "one", {"status": {"seen": "no"}}, namespace=namespace)
    assert by_object.status.seen == "yes"


async def test_an_object_the_struct_cannot_hold_is_told_apart(client: Client, namespace: str, gauges: Resource):
    await client.create(gauges, gauge("good", 3), namespace=namespace)
    with pytest.raises(UnreadableAnswer, match="level"):
        await client.create(gauges, gauge("odd", "high"), namespace=namespace)
    listed = await client.list(gauges, Selection(namespace=namespace))
    assert [item.metadata.name for item in listed.items] == ["good"]
    assert [(bad_object.name, bad_object.namespace) for bad_object in listed.bad] == [("odd", namespace)]


async def test_conditions_are_written_when_they_change_and_only_then(client: Client, namespace: str, gauges: Resource):
    await client.create(gauges, gauge("one"), namespace=namespace)

    async def subject() -> Subject:
        return Subject.read(await client.get_raw(gauges, "one", namespace=namespace))

    def ready(status: str, reason: str) -> Condition:
        return Condition(type="Ready", status=status, reason=reason, message="as tested")

    writer = ConditionsWriter(
        client, owned=["Ready"], owned_fields=["seen"], field_manager="plimsoll-e2e-gauges", clock=CLOCK
    )
    other = ConditionsWriter(client, owned=["Calibrated"], field_manager="plimsoll-e2e-others", clock=CLOCK)
    stale = await subject()
    assert isinstance(await writer.write(gauges, stale, [ready("False", "Starting")]), Told)
    calibrated = Condition(type="Calibrated", status="True", reason="ByHand", message="")
    assert isinstance(await other.write(gauges, stale, [calibrated]), Told)
    before = await subject()
    assert await writer.write(gauges, before, [ready("False", "Starting")]) == Unchanged()
    assert isinstance(await writer.write(gauges, before, [ready("True", "Started")], fields={"seen": "x"}), Told)
    found = await subject()
    assert {condition.type: (condition.status, condition.reason) for condition in found.conditions} == {
        "Ready": ("True", "Started"),
        "Calibrated": ("True", "ByHand"),
    }
    assert found.status["seen"] == "x"
    assert {condition.observed_generation for condition in found.conditions} == {found.metadata.generation}
    assert isinstance(await writer.write(gauges, found, [ready("True", "Started")]), Told)
    assert "seen" not in (await subject()).status


async def test_conditions_of_an_object_that_is_gone_are_not_written(client: Client, namespace: str, gauges: Resource):
    await client.create(gauges, gauge("one"), namespace=namespace)
    gone = Subject.read(await client.get_raw(gauges, "one", namespace=namespace))
    await client.delete(gauges, "one", namespace=namespace)
    await client.create(gauges, gauge("one"), namespace=namespace)
    writer = ConditionsWriter(client, owned=["Ready"], field_manager="plimsoll-e2e-gauges", clock=CLOCK)
    claim = Condition(type="Ready", status="True", reason="Started")
    assert await writer.write(gauges, gone, [claim]) == SubjectGone()


async def test_a_finalizer_keeps_an_object_until_it_is_removed(client: Client, namespace: str, gauges: Resource):
    made = await client.create(gauges, gauge("one"), namespace=namespace)
    finalizer, late = Finalizer(client, "plimsoll.example/clean-up"), Finalizer(client, "plimsoll.example/late")
    try:
        assert await finalizer.add(gauges, made.metadata) is Kept.CHANGED
        assert await finalizer.add(gauges, made.metadata) is Kept.UNCHANGED  # from metadata that is out of date
        await client.delete(gauges, "one", namespace=namespace)
        leaving = await client.get(gauges, "one", namespace=namespace)
        assert leaving.metadata.deletion_timestamp is not None
        assert await late.add(gauges, leaving.metadata) is Kept.BEING_DELETED
        assert await finalizer.remove(gauges, leaving.metadata) is Kept.CHANGED
        assert not await exists(client, gauges, "one", namespace=namespace)
        assert await finalizer.remove(gauges, leaving.metadata) is Kept.GONE
    finally:
        # Whatever failed, nothing may keep the definition and the namespace from going.
        with suppress(NotFound):
            await client.merge_patch(gauges, "one", {"metadata": {"finalizers": None}}, namespace=namespace)
