"""The kubelet's process ends after any of its calls; the next one finishes the story with the same end."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.local.kubelet.builders import KubeletCluster

WRITES = ("POST", "PATCH", "DELETE")


class StopsAfterWrite:
    """After the write number `n` took effect nothing of this process gets an answer any more."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.writes = 0
        self.is_mended = False

    @property
    def has_struck(self) -> bool:
        return self.writes >= self.n

    def wrap(self, transport: Any) -> Any:
        return transport if self.is_mended else _StoppableTransport(self, transport)


class _StoppableTransport:
    def __init__(self, fault: StopsAfterWrite, transport: Any) -> None:
        self._fault = fault
        self._transport = transport

    async def send(self, call: Any) -> Any:
        if self._fault.has_struck:
            await asyncio.Event().wait()
        reply = await self._transport.send(call)
        if call.method in WRITES:
            self._fault.writes += 1
            if self._fault.has_struck:
                await asyncio.Event().wait()
        return reply

    async def aclose(self) -> None:
        await self._transport.aclose()


def story(fault: StopsAfterWrite) -> dict[str, Any]:
    """Three pods: one runs, one completes, one is deleted on the way."""
    with KubeletCluster(reported=True, start_s=2, through=fault.wrap) as world:
        world.node()
        world.pod("runs")
        world.pod("works", pace={"run-seconds": 5}, restartPolicy="Never")
        world.pod("goes")
        for second in range(20):
            if second == 5:
                world.delete_pod("goes")
            world.run.advance_by(1)
            if fault.has_struck and not fault.is_mended:
                fault.is_mended = True
                world.kill()
                world.start()
        world.run.advance_by(10)
        found = {name: world.get_pod(name) for name in ("runs", "works", "goes")}
        assert world.lease() is not None
        ips = [pod["status"]["podIP"] for pod in found.values() if pod]
        assert len(set(ips)) == len(ips)
        return {name: pod and (pod["status"]["phase"], pod["status"]["startTime"]) for name, pod in found.items()}


def test_a_crash_after_any_write_changes_nothing_but_times():
    untouched = StopsAfterWrite(10**9)
    expected = story(untouched)
    assert expected["goes"] is None
    assert [expected[name][0] for name in ("runs", "works")] == ["Running", "Succeeded"]
    assert untouched.writes > 8
    for n in range(1, untouched.writes + 1):
        ended = story(StopsAfterWrite(n))
        assert ended["goes"] is None, n
        assert [ended[name][0] for name in ("runs", "works")] == ["Running", "Succeeded"], n
