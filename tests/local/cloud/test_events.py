"""What `kubectl describe` shows of a cloud that refused something."""

from __future__ import annotations

from typing import Any

from tests.local.cloud.builders import CloudCluster

NONE_LEFT = [{"name": "s", "machineType": "small", "machines": 1}]


def reported(world: CloudCluster, kind: str) -> list[tuple[str, str, str, str]]:
    events: list[Any] = world.kube.ask("GET", "/api/v1/namespaces/default/events")["items"]
    about = [event for event in events if event["involvedObject"]["kind"] == kind]
    assert {item["source"]["component"] for item in about} <= {"cloud"}
    rows = [(item["involvedObject"]["name"], item["type"], item["reason"], item["message"]) for item in about]
    return sorted(rows)


def test_a_stock_out_is_reported_each_machine_and_once_of_their_group():
    with CloudCluster(stock=NONE_LEFT) as world:
        world.group("g", target=3)
        why = "out of stock: small, 1 in all"
        assert reported(world, "Machine") == [(f"g-{number}", "Warning", "OutOfStock", why) for number in (1, 2)]
        assert reported(world, "NodeGroup") == [("g", "Warning", "OutOfStock", f"2 machines refused: {why}")]


def test_a_quota_is_reported():
    with CloudCluster(quotas=[{"name": "q", "limit": 0}]) as world:
        world.group("g", target=1)
        why = "1 machine refused: quota q exceeded: limit 0 machines"
        assert reported(world, "NodeGroup") == [("g", "Warning", "QuotaExceeded", why)]


def test_a_type_that_is_not_offered_is_reported():
    with CloudCluster() as world:
        world.group("g", target=1, machineType="nope")
        why = "1 machine refused: machine type 'nope' is not sold here"
        assert reported(world, "NodeGroup") == [("g", "Warning", "NotSold", why)]


def test_recovery_is_reported():
    with CloudCluster(stock=NONE_LEFT) as world:
        world.group("g", target=2)
        world.patch_cloud(stock=[])
        again = "the cloud has room again: "
        assert ("g-1", "Normal", "RoomAgain", f"{again}the machine starts") in reported(world, "Machine")
        assert ("g", "Normal", "RoomAgain", f"{again}1 machine started") in reported(world, "NodeGroup")


def test_a_cloud_with_room_is_silent():
    with CloudCluster() as world:
        world.group("g", target=2)
        assert reported(world, "Machine") == reported(world, "NodeGroup") == []
