"""What the simulated OCM asks of its data plane, in which order, and again after a restart."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.local.ocm.documents import BASE
from plimsoll.local.ocm.ports import DataPlaneFailed
from plimsoll.local.ocm.state import decode_state
from tests.local.ocm.ocm_world import STANDARD, play

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from plimsoll.core.clock import Clock
    from plimsoll.local.ocm.ports import ClusterSpec, PoolSpec
    from tests.local.ocm.ocm_world import OcmWorld

ADDON = {"addon": {"id": "agent"}, "parameters": {"items": [{"id": "a", "value": "1"}]}}


@dataclass
class RecordingDataPlane:
    """Records calls. `failing`: the calls that fail. `clock` and `takes_s`: how long a call takes."""

    calls: list[tuple[Any, ...]] = field(default_factory=list)
    failing: set[str] = field(default_factory=set)
    clock: Clock | None = None
    takes_s: float = 0.0

    async def make(self, cluster: ClusterSpec) -> None:
        await self._record("make", cluster.id, cluster.name)

    async def set_pools(self, cluster_id: str, pools: tuple[PoolSpec, ...]) -> None:
        await self._record("set_pools", cluster_id, {pool.id: pool.max_replicas for pool in pools})

    async def install(self, cluster_id: str, addon_id: str, parameters: Mapping[str, str]) -> None:
        await self._record("install", cluster_id, addon_id, dict(parameters))

    async def delete(self, cluster_id: str) -> None:
        await self._record("delete", cluster_id)

    async def _record(self, name: str, cluster_id: str, *arguments: Any) -> None:
        assert cluster_id
        if self.clock is not None:
            await self.clock.sleep(self.takes_s)
        self.calls.append((name, *arguments))
        if name in self.failing:
            raise DataPlaneFailed(f"{name} fails")


def test_a_cluster_is_made_bounded_filled_and_deleted():
    plane = RecordingDataPlane()

    async def story(world: OcmWorld) -> None:
        cluster_id = await world.create_ready()
        path = f"{BASE}/clusters/{cluster_id}"
        await world.call("POST", f"{path}/machine_pools", STANDARD)
        await world.call("POST", f"{path}/addons", ADDON)
        await world.clock.sleep(121)
        await world.call("DELETE", path)
        await world.clock.sleep(121)
        assert await world.get_state(cluster_id) == "gone"

    play(story, data_plane=plane)
    assert plane.calls == [
        ("make", "mk-1"),
        ("set_pools", {"default": 18}),
        ("set_pools", {"default": 18, "kafka-standard": 18}),
        ("install", "agent", {"a": "1"}),
        ("delete",),
        ("delete",),
    ]


def test_a_cluster_that_cannot_be_made_is_in_error():
    plane = RecordingDataPlane(failing={"make"})

    async def story(world: OcmWorld) -> None:
        cluster_id = await world.create()
        await world.clock.sleep(661)
        assert await world.get_state(cluster_id) == "error"
        answer = await world.call("GET", f"{BASE}/clusters/{cluster_id}")
        assert answer.document["status"]["provision_error_message"] == "make fails"

    play(story, data_plane=plane)


def test_an_addon_that_cannot_be_installed_has_failed():
    plane = RecordingDataPlane(failing={"install"})

    async def story(world: OcmWorld) -> None:
        addons = f"{BASE}/clusters/{await world.create_ready()}/addons"
        await world.call("POST", addons, ADDON)
        await world.clock.sleep(121)
        assert (await world.call("GET", f"{addons}/agent")).document["state"] == "failed"

    play(story, data_plane=plane)


def test_pools_and_deletions_are_tried_until_they_succeed():
    plane = RecordingDataPlane()

    async def story(world: OcmWorld) -> None:
        cluster_id = await world.create_ready()
        plane.failing = {"set_pools", "delete"}
        await world.call("POST", f"{BASE}/clusters/{cluster_id}/machine_pools", STANDARD)
        await world.clock.sleep(61)
        assert plane.calls.count(("set_pools", {"default": 18, "kafka-standard": 18})) == 3
        await world.call("DELETE", f"{BASE}/clusters/{cluster_id}")
        await world.clock.sleep(200)
        assert await world.get_state(cluster_id) == "uninstalling"
        plane.failing = set()
        await world.clock.sleep(61)
        assert await world.get_state(cluster_id) == "gone"

    play(story, data_plane=plane)


def test_requests_are_answered_while_the_data_plane_is_slow():
    plane = RecordingDataPlane()

    async def story(world: OcmWorld) -> None:
        plane.clock, plane.takes_s = world.clock, 2000
        cluster_id = await world.create()
        await world.clock.sleep(1000)
        assert await world.get_state(cluster_id) == "installing"
        await world.call("DELETE", f"{BASE}/clusters/{cluster_id}")
        assert await world.get_state(cluster_id) == "uninstalling"
        plane.takes_s = 0
        await world.clock.sleep(4000)
        assert await world.get_state(cluster_id) == "gone"
        assert [call[0] for call in plane.calls][:2] == ["make", "set_pools"]

    play(story, data_plane=plane)


def test_after_a_restart_the_data_plane_is_asked_again_and_time_goes_on(tmp_path: Path):
    file = tmp_path / "ocm.json"
    ids: list[str] = []

    async def before(world: OcmWorld) -> None:
        ids.append(await world.create_ready("mk-1"))
        await world.call("POST", f"{BASE}/clusters/{ids[0]}/machine_pools", STANDARD)
        await world.call("POST", f"{BASE}/clusters/{ids[0]}/addons", ADDON)
        ids.append(await world.create("mk-2"))
        await world.clock.sleep(30)

    async def after(world: OcmWorld) -> None:
        assert await world.get_state(ids[0]) == "ready"
        assert await world.get_state(ids[1]) == "pending"
        await world.clock.sleep(2000)
        assert await world.get_state(ids[1]) == "ready"

    play(before, file=file)
    assert [cluster.spec.name for cluster in decode_state(file.read_bytes())] == ["mk-1", "mk-2"]
    plane = RecordingDataPlane()
    play(after, file=file, data_plane=plane)
    assert plane.calls[:3] == [
        ("make", "mk-1"),
        ("set_pools", {"default": 18, "kafka-standard": 18}),
        ("install", "agent", {"a": "1"}),
    ]
    assert ("make", "mk-2") in plane.calls


@pytest.mark.parametrize("content", [b"", b"[]", b'{"version": 2, "clusters": []}', b'{"version": 1, "clusters": [7]}'])
def test_a_file_of_another_program_is_refused(content: bytes):
    with pytest.raises(InvalidInput):
        decode_state(content)
