"""Auto-provisioning through our extension of the provider protocol: the simulated cloud at one end of a TLS
connection, the autoscaler's client at the other, real sockets and real time between them.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.kube.client import Client
from plimsoll.local.apiserver.application import Application
from plimsoll.local.apiserver.transport.kube_transport import EmbeddedTransport
from plimsoll.local.cloud.api import SimulatedCloud
from plimsoll.local.cloud.controller import CloudSettings
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind
from plimsoll.nodes.model.group_names import Naming
from plimsoll.nodes.model.instances import InstanceState
from plimsoll.nodes.providers.externalgrpc.channels import GrpcCalls
from plimsoll.nodes.providers.externalgrpc.client import ExternalGrpcProvider
from plimsoll.nodes.providers.externalgrpc.configuration import parse_configuration
from plimsoll.nodes.providers.externalgrpc.server import serve_provider
from plimsoll.nodes.providers.externalgrpc.service import ProviderService
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.nodes.providers.values import NodeRef
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import Cloud, NodeGroup
from plimsoll.runtime.clocks import RealClock
from plimsoll.runtime.entropy import SeededEntropy
from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.e2e.timeouts import PATIENCE_S
from tests.kube.embedded_api import UNLIMITED
from tests.local.apiserver.builders import ADMIN, new_server
from tests.local.cloud.builders import KNOWN, cloud_body, cloud_definitions, group_body, running_cloud
from tests.nodes.providers.simulated.simulated_clusters import blueprint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable
    from pathlib import Path

pytestmark = pytest.mark.asyncio


@contextlib.asynccontextmanager
async def simulated_cloud() -> AsyncIterator[Client]:
    """An API server with a cloud whose machines boot at once."""
    clock = RealClock()
    transport = EmbeddedTransport(Application(new_server(clock)), token=ADMIN)
    client = Client(transport, clock=clock, entropy=SeededEntropy("nap"), settings=UNLIMITED, kinds=KNOWN)
    for body in cloud_definitions():
        await client.create(CustomResourceDefinition, body)
    await _until(lambda: _is_served(client))
    await client.create(Cloud, cloud_body(bootSeconds=0))
    _, run = running_cloud(client, clock=clock, settings=CloudSettings(nodes_come_ready=True))
    task = asyncio.create_task(_run(run))
    try:
        yield client
    finally:
        task.cancel()
        await asyncio.wait([task])


@contextlib.asynccontextmanager
async def over_tls(client: Client, folder: Path) -> AsyncIterator[ExternalGrpcProvider]:
    authority = CertificateAuthority(folder, "authority")
    near = ProviderService(SimulatedProvider(SimulatedCloud(client, clock=RealClock())))
    listen = parse_configuration({"address": "127.0.0.1:0", **authority.files("server")})
    async with serve_provider(near, listen) as port:
        calls = GrpcCalls(parse_configuration({"address": f"127.0.0.1:{port}", **authority.files("client")}))
        try:
            yield ExternalGrpcProvider(calls)
        finally:
            await calls.close()


async def _run(run: Callable[[], Awaitable[None]]) -> None:
    await run()


async def _is_served(client: Client) -> bool:
    listed = await client.get_json("/apis")
    return any(group["name"] == "cloud.plimsoll.io" for group in listed["groups"])


async def _until(holds: Callable[[], Awaitable[bool]]) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while not await holds():  # noqa: ASYNC110 - a server causes no event
            await asyncio.sleep(0.02)


async def test_an_auto_provisioned_group_lives_its_life_over_tls(tmp_path: Path):
    async with simulated_cloud() as client, over_tls(client, tmp_path) as provider:
        await provider.refresh()
        kinds: Any = await provider.get_machine_types()
        assert [kind.name for kind in kinds] == ["large", "small"]
        assert provider.naming == Naming(underscores=False, longest=54)

        wanted: Any = await provider.new_node_group(blueprint(machine_type="large", id="nap-large-1"))
        template = await wanted.template_node_info()
        assert template.metadata.labels["team"] == "red"
        assert (wanted.exists, [node_group.id for node_group in await provider.node_groups()]) == (False, [])

        assert await wanted.create() == Created(id="nap-large-1")
        assert await wanted.create() == Created(id="nap-large-1")
        (group,) = await provider.node_groups()
        assert await group.increase_size(2, expected=0) == Done()
        await _until(lambda: _has_nodes(client, 2))
        made: Node = await client.get(Node, "nap-large-1-0")
        assert made.metadata.labels["team"] == "red"
        assert [(taint.key, taint.value) for taint in made.spec.taints] == [("dedicated", "red")]

        refused = await group.delete()
        assert isinstance(refused, CallFailed)
        assert refused.kind is FailureKind.REFUSED
        nodes = [NodeRef(provider_id="", name=f"nap-large-1-{number}") for number in range(2)]
        assert await group.delete_nodes(nodes[:1]) == Done()
        assert await group.force_delete_nodes(nodes[1:]) == Done()
        await _until(lambda: _has_nodes(client, 0))
        assert await group.delete() == Done()
        assert await group.delete() == Done()
        await provider.refresh()
        assert await provider.node_groups() == ()


async def test_a_group_that_the_cloud_would_not_make_is_refused_with_its_words(tmp_path: Path):
    async with simulated_cloud() as client, over_tls(client, tmp_path) as provider:
        await provider.refresh()
        outcome = await provider.new_node_group(blueprint(machine_type="huge"))
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.REFUSED
        assert "huge is not sold here" in outcome.message


async def test_atomic_growth_crosses_the_wire_for_groups_that_have_it(tmp_path: Path):
    async with simulated_cloud() as client, over_tls(client, tmp_path) as provider:
        await client.create(NodeGroup, group_body("atomic", atomic=True))
        await client.create(NodeGroup, group_body("plain"))
        await provider.refresh()
        groups = {group.id: group for group in await provider.node_groups()}
        assert await groups["atomic"].can_increase_atomically()
        assert not await groups["plain"].can_increase_atomically()
        assert await groups["atomic"].atomic_increase_size(2, expected=0) == Done()
        await _until(lambda: _has_nodes(client, 2))
        await provider.refresh()
        states = {instance.state for instance in await groups["atomic"].nodes()}
        assert states == {InstanceState.RUNNING}


async def _has_nodes(client: Client, count: int) -> bool:
    return len((await client.list(Node)).items) == count
