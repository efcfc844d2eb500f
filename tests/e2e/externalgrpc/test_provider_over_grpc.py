"""The provider protocol over real sockets: our client and our server as in production, and servers that misbehave."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, Any

import grpc
import grpc.aio
import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.model.call_outcomes import CallFailed, Done, FailureKind, NotImplementedByProvider
from plimsoll.nodes.providers.externalgrpc.channels import GrpcCalls
from plimsoll.nodes.providers.externalgrpc.client import ExternalGrpcProvider
from plimsoll.nodes.providers.externalgrpc.configuration import parse_configuration
from plimsoll.nodes.providers.externalgrpc.methods import CLOUD_PROVIDER, METHODS
from plimsoll.nodes.providers.externalgrpc.server import serve_provider
from plimsoll.nodes.providers.externalgrpc.service import ProviderService
from plimsoll.nodes.providers.ports import Created
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from plimsoll.nodes.providers.values import ProviderFailed
from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.e2e.externalgrpc.memory_clouds import MemoryCloud
from tests.e2e.timeouts import PATIENCE_S
from tests.nodes.providers.simulated.simulated_clusters import DEFAULTS, blueprint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator
    from pathlib import Path

pytestmark = pytest.mark.asyncio


@contextlib.asynccontextmanager
async def served(cloud: MemoryCloud, *, address: str = "127.0.0.1:0", **settings: Any) -> AsyncIterator[int]:
    extension = settings.pop("with_extension", True)
    service = ProviderService(SimulatedProvider(cloud))
    configuration = parse_configuration({"address": address, **settings})
    async with serve_provider(service, configuration, with_extension=extension) as port:
        yield port


@contextlib.asynccontextmanager
async def client(port: int, **settings: Any) -> AsyncIterator[ExternalGrpcProvider]:
    calls = GrpcCalls(parse_configuration({"address": f"127.0.0.1:{port}", **settings}))
    try:
        yield ExternalGrpcProvider(calls)
    finally:
        await calls.close()


async def test_a_group_lives_its_life_over_the_wire():
    cloud = MemoryCloud(g=1)
    async with served(cloud) as port, client(port) as provider:
        await provider.refresh()
        (group,) = await provider.node_groups()
        assert await group.increase_size(2, expected=1) == Done()
        assert await group.increase_size(2, expected=1) == Done()
        assert cloud.groups["g"].spec.target == 3
        assert [node.id for node in await group.nodes()] == ["memory://g-0", "memory://g-1", "memory://g-2"]
        template = await group.template_node_info()
        assert not isinstance(template, NotImplementedByProvider)
        assert template.status.capacity == {"cpu": "2"}
        assert await group.get_options(DEFAULTS) == DEFAULTS


async def test_groups_are_made_through_the_extension():
    cloud = MemoryCloud()
    async with served(cloud) as port, client(port) as provider:
        group = await provider.new_node_group(blueprint(zones=()))
        assert not isinstance(group, CallFailed | NotImplementedByProvider)
        assert await group.create() == Created(id="nap-small-1")
        assert list(cloud.groups) == ["nap-small-1"]


async def test_a_server_without_the_extension_is_found_out():
    async with served(MemoryCloud(g=1), with_extension=False) as port, client(port) as provider:
        (group,) = await provider.node_groups()
        assert not await group.can_increase_atomically()
        assert isinstance(await provider.get_machine_types(), NotImplementedByProvider)
        assert isinstance(await provider.new_node_group(blueprint()), NotImplementedByProvider)
        assert await group.increase_size(1, expected=1) == Done()


async def test_answers_larger_than_grpc_takes_by_itself_come_through():
    async with served(MemoryCloud(g=150_000)) as port, client(port, grpc_timeout="60s") as provider:
        (group,) = await provider.node_groups()
        instances = await group.nodes()
        assert len(instances) == 150_000
        assert sum(len(instance.id) for instance in instances) > 2 << 20


# ---- who is heard


async def test_client_and_server_authenticate_each_other(tmp_path: Path):
    authority = CertificateAuthority(tmp_path, "authority")
    async with (
        served(MemoryCloud(g=1), **authority.files("server")) as port,
        client(port, **authority.files("client")) as provider,
    ):
        assert [group.id for group in await provider.node_groups()] == ["g"]


@pytest.mark.parametrize("who", ["nobody", "stranger"])
async def test_a_server_accepts_only_certificates_of_its_authority(tmp_path: Path, who: str):
    authority = CertificateAuthority(tmp_path, "authority")
    settings: dict[str, str] = {}
    if who == "stranger":
        # It knows the server's authority, but its own certificate is from another.
        settings = {
            **CertificateAuthority(tmp_path, "other").files("stranger"),
            "cacert": authority.files("x")["cacert"],
        }
    cloud = MemoryCloud(g=1)
    async with served(cloud, **authority.files("server")) as port, client(port, **settings) as provider:
        with pytest.raises(ProviderFailed):
            await provider.node_groups()


async def test_a_client_believes_only_servers_that_its_authority_knows(tmp_path: Path):
    real, false = CertificateAuthority(tmp_path, "real"), CertificateAuthority(tmp_path, "false")
    async with (
        served(MemoryCloud(g=1), **false.files("server")) as port,
        client(port, **real.files("client")) as provider,
    ):
        with pytest.raises(ProviderFailed, match="UNAVAILABLE"):
            await provider.node_groups()


async def test_a_port_that_others_can_reach_is_not_opened_without_certificates():
    with pytest.raises(InvalidInput, match="can be reached by others"):
        async with served(MemoryCloud(), address="0.0.0.0:0"):
            pass


async def test_a_busy_port_is_a_named_error():
    async with served(MemoryCloud()) as port:
        with pytest.raises(InvalidInput, match=f"cannot listen on 127.0.0.1:{port}"):
            async with served(MemoryCloud(), address=f"127.0.0.1:{port}"):
                pass


# ---- servers that misbehave


@contextlib.asynccontextmanager
async def odd_server(**behaviours: Any) -> AsyncIterator[int]:
    """With these calls only, each a coroutine function of request and context."""
    server = grpc.aio.server()
    handlers = {
        name: grpc.unary_unary_rpc_method_handler(
            behaviour,
            request_deserializer=METHODS[name].request.FromString,
            response_serializer=METHODS[name].response.SerializeToString,
        )
        for name, behaviour in behaviours.items()
    }
    server.add_generic_rpc_handlers([grpc.method_handlers_generic_handler(CLOUD_PROVIDER, handlers)])
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    try:
        yield port
    finally:
        await server.stop(0)


async def _hangs(_request: Any, _context: Any) -> Any:
    await asyncio.Event().wait()


async def _one_group(_request: Any, _context: Any) -> Any:
    return METHODS["NodeGroups"].response(nodeGroups=[{"id": "g", "maxSize": 3}])


async def _target_of_one(_request: Any, _context: Any) -> Any:
    return METHODS["NodeGroupTargetSize"].response(targetSize=1)


async def test_a_server_that_hangs_does_not_hang_the_autoscaler():
    behaviours = {
        "Refresh": _hangs,
        "NodeGroups": _one_group,
        "NodeGroupTargetSize": _target_of_one,
        "NodeGroupIncreaseSize": _hangs,
    }
    async with odd_server(**behaviours) as port, client(port, grpc_timeout="200ms") as provider:
        with pytest.raises(ProviderFailed, match="DEADLINE_EXCEEDED"):
            await provider.refresh()
        (group,) = await provider.node_groups()
        outcome = await group.increase_size(1, expected=1)
        assert isinstance(outcome, CallFailed)
        assert outcome.kind is FailureKind.UNKNOWN


async def test_a_server_with_the_least_there_is_will_do():
    async with odd_server(NodeGroups=_one_group, NodeGroupTargetSize=_target_of_one) as port, client(port) as provider:
        (group,) = await provider.node_groups()
        assert await group.target_size() == 1
        assert isinstance(await group.template_node_info(), NotImplementedByProvider)
        assert isinstance(await group.get_options(DEFAULTS), NotImplementedByProvider)


async def test_a_server_that_breaks_inside_is_a_failure_with_its_words():
    async def breaks(_request: Any, context: Any) -> Any:
        await context.abort(grpc.StatusCode.UNKNOWN, "nil pointer somewhere")

    behaviours = {"NodeGroups": _one_group, "NodeGroupTargetSize": _target_of_one, "NodeGroupIncreaseSize": breaks}
    async with odd_server(**behaviours) as port, client(port) as provider:
        (group,) = await provider.node_groups()
        outcome = await group.increase_size(1, expected=1)
        assert outcome == CallFailed(kind=FailureKind.FAILED, message="nil pointer somewhere")


async def test_a_server_that_went_away_is_found_again():
    cloud = MemoryCloud(g=1)
    async with contextlib.AsyncExitStack() as ends:
        async with served(cloud) as port:
            provider = await ends.enter_async_context(client(port))
            await provider.refresh()
        with pytest.raises(ProviderFailed, match="UNAVAILABLE"):
            await provider.refresh()
        async with served(cloud, address=f"127.0.0.1:{port}"):
            await _until_reached(provider)
            assert [node_group.id for node_group in await provider.node_groups()] == ["g"]


async def _until_reached(provider: ExternalGrpcProvider) -> None:
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await provider.refresh()
            except ProviderFailed:
                await asyncio.sleep(0.1)
            else:
                return


async def test_cleaning_up_closes_the_connection():
    async with served(MemoryCloud(g=1)) as port, client(port) as provider:
        await provider.cleanup()
        with pytest.raises(ProviderFailed, match="closed"):
            await provider.node_groups()
