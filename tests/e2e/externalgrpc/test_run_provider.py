"""`plimsoll run provider` as a process: the simulated cloud served over TLS, driven by our own client."""

from __future__ import annotations

import asyncio
import subprocess
from contextlib import asynccontextmanager, contextmanager
from typing import TYPE_CHECKING

import pytest

from plimsoll.nodes.model.call_outcomes import CallFailed, Done, NotImplementedByProvider
from plimsoll.nodes.providers.externalgrpc.channels import GrpcCalls
from plimsoll.nodes.providers.externalgrpc.client import ExternalGrpcProvider
from plimsoll.nodes.providers.externalgrpc.configuration import parse_configuration
from plimsoll.nodes.providers.ports import Created
from tests.e2e.apiserver.processes import running
from tests.e2e.externalgrpc.authorities import CertificateAuthority
from tests.e2e.nodes.live_clusters import Cluster, playing, plimsoll
from tests.e2e.ports import lasting_port
from tests.e2e.timeouts import PATIENCE_S
from tests.nodes.providers.simulated.simulated_clusters import blueprint

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Iterator
    from pathlib import Path


@contextmanager
def provider_process(kubeconfig: Path, folder: Path, *options: str) -> Iterator[None]:
    """`plimsoll run provider`, ended by SIGTERM; it must not have failed."""
    errors = folder / "provider.stderr"
    with errors.open("w") as sink:
        words = plimsoll("run", "provider", "--kubeconfig", str(kubeconfig), *options)
        process = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=sink)
    try:
        yield
    finally:
        process.terminate()
        process.wait(timeout=PATIENCE_S)
    assert "Traceback" not in errors.read_text(), errors.read_text()[-5000:]
    assert "serving the provider simulated" in errors.read_text()


@asynccontextmanager
async def connected(port: int, tls: dict[str, str]) -> AsyncIterator[ExternalGrpcProvider]:
    provider = ExternalGrpcProvider(GrpcCalls(parse_configuration({"address": f"127.0.0.1:{port}", **tls})))
    async with asyncio.timeout(PATIENCE_S):
        while True:
            try:
                await provider.refresh()
                break
            except Exception:  # noqa: BLE001 - the server is still starting
                await asyncio.sleep(0.3)
    yield provider
    await provider.cleanup()


async def create_and_scale(port: int, tls: dict[str, str]) -> None:
    async with connected(port, tls) as provider:
        assert await provider.node_groups() == ()
        types = await provider.get_machine_types()
        assert not isinstance(types, NotImplementedByProvider)
        wanted = blueprint(machine_type=types[0].name, zones=())
        group = await provider.new_node_group(wanted)
        assert not isinstance(group, CallFailed | NotImplementedByProvider)
        assert await group.create() == Created(id=wanted.id)
        await provider.refresh()
        (created,) = await provider.node_groups()
        assert await created.increase_size(2, expected=0) == Done()
        await provider.refresh()
        (scaled,) = await provider.node_groups()
        assert await scaled.target_size() == 2


def test_a_group_is_created_and_scaled_through_the_served_provider(tmp_path: Path):
    authority = CertificateAuthority(tmp_path, "authority")
    server_tls, port = authority.files("server"), lasting_port()
    options = [word for name, file in server_tls.items() for word in (f"--{name}", file)]
    with running(tmp_path / "data") as server:
        cluster = Cluster(server.kubeconfig, tmp_path)
        with (
            playing(cluster, "cloud", "--boot-seconds", "0.5"),
            provider_process(server.kubeconfig, tmp_path, "--address", f"127.0.0.1:{port}", *options),
        ):
            asyncio.run(create_and_scale(port, authority.files("client")))


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        (("--cloud-provider", "externalgrpc"), "externalgrpc is the served protocol"),
        (("--address", "0.0.0.0:8086"), "can be reached by others"),
        (("--cert", "only.crt"), "cert, key and cacert go together"),
    ],
)
def test_options_that_cannot_be_served_are_refused(tmp_path: Path, options: tuple[str, ...], problem: str):
    with running(tmp_path / "data") as server:
        words = plimsoll("run", "provider", "--kubeconfig", str(server.kubeconfig), *options)
        ended = subprocess.run(words, capture_output=True, text=True, check=False, timeout=PATIENCE_S)
    assert ended.returncode != 0
    assert problem in ended.stderr
    assert "Traceback" not in ended.stderr
