"""The example that docs/controllers.md begins with does what it says, as a process, and stops on a signal."""

from __future__ import annotations

import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import pytest_asyncio

from plimsoll.kube.errors import NotFound
from plimsoll.kube.requests.options import Selection
from plimsoll.objects.api.coordination import Lease
from plimsoll.objects.api.core import ConfigMap
from plimsoll.objects.api.events import Event
from tests.e2e.kube.clusters import delete_namespace, exists, make_namespace, until
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from plimsoll.kube.access import Access
    from plimsoll.kube.client import Client

EXAMPLE = Path(__file__).parents[3] / "examples" / "copy_controller.py"


@pytest_asyncio.fixture
async def other_namespace(access: Access) -> AsyncIterator[str]:
    name = await make_namespace(access)
    try:
        yield name
    finally:
        await delete_namespace(access, name)


@pytest.mark.asyncio
async def test_the_example_copies_reports_and_gives_its_lease_back(
    client: Client, access: Access, kubeconfig: Path, namespace: str, other_namespace: str
):
    body = {"metadata": {"name": "x", "labels": {"copy-to": other_namespace}}, "data": {"k": "v"}}
    await client.create(ConfigMap, body, namespace=namespace)
    command = [sys.executable, str(EXAMPLE), "--kubeconfig", str(kubeconfig)]
    with subprocess.Popen(command) as process:  # noqa: ASYNC220 - it starts in no time, and the loop has nothing else to do
        try:
            await until(lambda: exists(client, ConfigMap, "x", namespace=other_namespace))
            await until(lambda: _was_reported(client, namespace))
            process.terminate()
            assert process.wait(timeout=PATIENCE_S) == 0
            lease = await client.get(Lease, "copy-controller", namespace=access.namespace)
            assert lease.spec.holder_identity == ""
        finally:
            process.kill()
            with suppress(NotFound):
                await client.delete(Lease, "copy-controller", namespace=access.namespace)
    copied = await client.get(ConfigMap, "x", namespace=other_namespace)
    assert copied.data == {"k": "v"}


async def _was_reported(client: Client, namespace: str) -> bool:
    events = await client.list(Event, Selection(namespace=namespace))
    return any(event.reason == "Copied" for event in events.items)
