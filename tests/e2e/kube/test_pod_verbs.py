"""Eviction and binding: the parts of a pod that are verbs."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from plimsoll.kube.errors import Conflict, NotFound
from plimsoll.kube.requests.options import DeleteOptions
from plimsoll.kube.subresources import Blocked, Evicted, PodGone
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.pods import Pod
from plimsoll.objects.api.policy import PodDisruptionBudget
from tests.e2e.kube.clusters import exists, until
from tests.e2e.kube.pods_and_maps import pod, running_pod

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.client import Client

pytestmark = pytest.mark.asyncio


@pytest_asyncio.fixture
async def node(client: Client) -> AsyncIterator[str]:
    """A node that no kubelet stands behind."""
    made = await client.create(Node, {"metadata": {"generateName": "plimsoll-e2e-"}})
    try:
        yield made.metadata.name
    finally:
        with suppress(NotFound):
            await client.delete(Node, made.metadata.name)


async def test_a_pod_that_no_budget_protects_is_evicted(client: Client, namespace: str):
    await client.create(Pod, pod("one"), namespace=namespace)
    assert await client.evict("one", namespace=namespace, options=DeleteOptions(is_dry_run=True)) == Evicted()
    assert await exists(client, Pod, "one", namespace=namespace)
    assert await client.evict("one", namespace=namespace) == Evicted()

    async def is_gone() -> bool:
        return not await exists(client, Pod, "one", namespace=namespace)

    await until(is_gone)


async def test_evicting_a_pod_that_is_not_there_says_so(client: Client, namespace: str):
    assert isinstance(await client.evict("nobody", namespace=namespace), PodGone)


async def test_evicting_a_pod_of_another_uid_says_that_it_is_gone(client: Client, namespace: str):
    await client.create(Pod, pod("one"), namespace=namespace)
    other = DeleteOptions(uid="00000000-0000-4000-8000-000000000000")
    assert isinstance(await client.evict("one", namespace=namespace, options=other), PodGone)
    assert await exists(client, Pod, "one", namespace=namespace)


async def test_a_budget_blocks_the_eviction_until_it_is_removed(client: Client, namespace: str):
    """With a disruption controller the budget allows none; without one it is never ready to allow any."""
    labels = {"app": "db"}
    await running_pod(client, namespace, "one", labels=labels)
    budget = {"metadata": {"name": "db"}, "spec": {"minAvailable": 1, "selector": {"matchLabels": labels}}}
    await client.create(PodDisruptionBudget, budget, namespace=namespace)

    async def is_blocked() -> Blocked | None:
        found = await client.evict("one", namespace=namespace, options=DeleteOptions(is_dry_run=True))
        return found if isinstance(found, Blocked) else None

    blocked = await until(is_blocked)
    assert any("db" in reason for reason in blocked.reasons)
    assert isinstance(await client.evict("one", namespace=namespace), Blocked)
    assert await exists(client, Pod, "one", namespace=namespace)

    await client.delete(PodDisruptionBudget, "db", namespace=namespace)

    async def is_evicted() -> bool:
        return await client.evict("one", namespace=namespace) == Evicted()

    await until(is_evicted)


async def test_binding_puts_a_pod_on_a_node_once(client: Client, namespace: str, node: str):
    made = await client.create(Pod, pod("one"), namespace=namespace)
    try:
        await client.bind("one", node, namespace=namespace, uid=made.metadata.uid)
        bound = await client.get(Pod, "one", namespace=namespace)
        assert bound.spec.node_name == node
        with pytest.raises(Conflict):
            await client.bind("one", node, namespace=namespace)
    finally:
        # No kubelet confirms the end of the pod, and a namespace waits for its pods.
        await client.delete(Pod, "one", namespace=namespace, options=DeleteOptions(grace_s=0))
