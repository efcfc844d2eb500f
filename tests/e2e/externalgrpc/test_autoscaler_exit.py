"""A node autoscaler that exits informs its external provider: `Cleanup` is the last call."""

from __future__ import annotations

import asyncio
import signal
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.nodes.providers.externalgrpc.configuration import parse_configuration
from plimsoll.nodes.providers.externalgrpc.server import serve_provider
from plimsoll.nodes.providers.externalgrpc.service import ProviderService
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider
from tests.e2e.apiserver.processes import running
from tests.e2e.externalgrpc.memory_clouds import MemoryCloud
from tests.e2e.nodes.live_clusters import plimsoll
from tests.e2e.timeouts import PATIENCE_S

if TYPE_CHECKING:
    from pathlib import Path

    from plimsoll.nodes.providers.externalgrpc.methods import Method


class RecordedService(ProviderService):
    """Notes the names of all calls."""

    def __init__(self) -> None:
        super().__init__(SimulatedProvider(MemoryCloud(g=1)))
        self.names: list[str] = []

    async def answer(self, method: Method, request: Any) -> Any:
        self.names.append(method.name)
        return await super().answer(method, request)


async def run_autoscaler(kubeconfig: Path, folder: Path, *options: str) -> RecordedService:
    """`plimsoll run nodes` until it ends, or by SIGTERM after its first loop."""
    service = RecordedService()
    async with serve_provider(service, parse_configuration({"address": "127.0.0.1:0"})) as port:
        cloud_config = folder / "provider.yaml"
        cloud_config.write_text(f"address: 127.0.0.1:{port}\n")
        words = plimsoll(
            *(
                "run",
                "nodes",
                "--kubeconfig",
                str(kubeconfig),
                "--cloud-provider=externalgrpc",
                "--address=127.0.0.1:0",
            ),
            *(f"--cloud-config={cloud_config}", "--leader-elect=false", *options),
        )
        process = await asyncio.create_subprocess_exec(
            *words, stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.PIPE
        )
        async with asyncio.timeout(PATIENCE_S):
            while "Refresh" not in service.names and process.returncode is None:  # noqa: ASYNC110 - two ends are waited for
                await asyncio.sleep(0.2)
            if "--once" not in options:
                process.send_signal(signal.SIGTERM)
            _, errors = await process.communicate()
        assert b"Traceback" not in errors, errors[-3000:]
    return service


@pytest.mark.parametrize("options", [("--once", "--dry-run"), ("--scan-interval=1s",)], ids=["once", "signalled"])
def test_cleanup_is_the_last_call(tmp_path: Path, options: tuple[str, ...]):
    with running(tmp_path / "data") as server:
        service = asyncio.run(run_autoscaler(server.kubeconfig, tmp_path, *options))
    assert service.names.count("Cleanup") == 1
    assert service.names[-1] == "Cleanup"
