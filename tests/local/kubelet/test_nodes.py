"""Nodes that the virtual kubelet plays: boot, stay, fall silent, go."""

from __future__ import annotations

import pytest

from tests.local.kubelet.builders import KubeletCluster, a_node, conditions

HEALTHY = {
    "MemoryPressure": ("False", "KubeletHasSufficientMemory"),
    "DiskPressure": ("False", "KubeletHasNoDiskPressure"),
    "PIDPressure": ("False", "KubeletHasSufficientPID"),
    "Ready": ("True", "KubeletReady"),
}


def test_a_node_is_ready_when_its_boot_time_is_over_and_not_before():
    with KubeletCluster(boot_s=30) as world:
        world.node()
        world.run.advance_by(29)
        assert conditions(world.get_node()) == {}
        assert world.lease() is None
        world.run.advance_by(2)
        assert conditions(world.get_node()) == HEALTHY


def test_a_node_may_say_how_long_it_boots():
    with KubeletCluster(boot_s=30) as world:
        world.node(boot_seconds=5)
        world.run.advance_by(6)
        assert conditions(world.get_node()) == HEALTHY


def test_conditions_stand_in_the_kubelets_order_with_its_words():
    with KubeletCluster() as world:
        reported = [(condition["type"], condition["message"]) for condition in world.node()["status"]["conditions"]]
    assert reported == [
        ("MemoryPressure", "kubelet has sufficient memory available"),
        ("DiskPressure", "kubelet has no disk pressure"),
        ("PIDPressure", "kubelet has sufficient PID available"),
        ("Ready", "kubelet is posting ready status"),
    ]


def test_a_node_gets_an_address_of_its_own_and_the_facts_of_a_machine():
    with KubeletCluster() as world:
        first, second = world.node("n1")["status"], world.node("n2")["status"]
    assert first["addresses"] == [
        {"type": "InternalIP", "address": "10.128.0.1"},
        {"type": "Hostname", "address": "n1"},
    ]
    assert second["addresses"][0]["address"] == "10.128.0.2"
    info = first["nodeInfo"]
    assert (info["architecture"], info["operatingSystem"], info["kubeletVersion"]) == ("arm64", "linux", "v1.34.1")
    assert info["machineID"] != second["nodeInfo"]["machineID"]
    assert info["containerRuntimeVersion"].startswith("containerd://")


def test_what_the_machine_says_of_itself_stays():
    node = a_node()
    node["status"]["nodeInfo"] = {"osImage": "Another OS"}
    node["status"]["addresses"] = [{"type": "InternalIP", "address": "192.0.2.7"}]
    with KubeletCluster() as world:
        world.made("/api/v1/nodes", node)
        world.run.settle()
        status = world.get_node()["status"]
    assert status["nodeInfo"]["osImage"] == "Another OS"
    assert [address["address"] for address in status["addresses"]] == ["192.0.2.7", "n1"]
    assert status["allocatable"]["cpu"] == "4"


def test_nodes_without_the_label_are_not_touched():
    with KubeletCluster() as world:
        before = world.node("real", labels={})
        world.run.advance_by(60)
        assert world.get_node("real") == before
        assert world.lease("real") is None


def test_the_lease_is_owned_by_the_node_and_renewed_every_ten_seconds():
    with KubeletCluster() as world:
        node = world.node()
        lease = world.lease()
        assert lease["metadata"]["ownerReferences"] == [
            {"apiVersion": "v1", "kind": "Node", "name": "n1", "uid": node["metadata"]["uid"]}
        ]
        assert (lease["spec"]["holderIdentity"], lease["spec"]["leaseDurationSeconds"]) == ("n1", 40)
        times = []
        for _ in range(6):
            world.run.advance_by(10)
            times.append(world.lease()["spec"]["renewTime"])
        assert len(set(times)) == 6


def test_the_status_is_repeated_every_five_minutes_though_nothing_changed():
    with KubeletCluster() as world:
        world.node()
        world.run.advance_by(301)
        heard = world.get_node()["status"]["conditions"][3]["lastHeartbeatTime"]
        world.run.advance_by(301)
        ready = world.get_node()["status"]["conditions"][3]
    assert heard > "2026-01-01T00:00:00Z"
    assert ready["lastHeartbeatTime"] > heard
    assert ready["lastTransitionTime"] == "2026-01-01T00:00:00Z"


def test_a_silent_node_sends_nothing_and_recovers_when_it_may_speak():
    with KubeletCluster() as world:
        world.node()
        world.annotate_node(silent="true")
        world.run.advance_by(20)
        before = world.lease()["spec"]["renewTime"]
        world.run.advance_by(60)
        assert world.lease()["spec"]["renewTime"] == before
        world.annotate_node(silent=None)
        assert world.lease()["spec"]["renewTime"] > before


def test_a_node_that_was_given_up_is_ready_again_at_once():
    """The node lifecycle controller called it Unknown; its kubelet knows better."""
    lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "Kubelet stopped posting."}
    with KubeletCluster() as world:
        world.node()
        world.run.advance_by(100)
        content = "application/strategic-merge-patch+json"
        world.ask("PATCH", "/api/v1/nodes/n1/status", {"status": {"conditions": [lost]}}, content=content)
        world.run.settle()
        ready = world.get_node()["status"]["conditions"][3]
    assert (ready["status"], ready["reason"], ready["message"]) == (
        "True",
        "KubeletReady",
        "kubelet is posting ready status",
    )
    assert ready["lastTransitionTime"] == "2026-01-01T00:01:40Z"


def test_a_new_process_takes_the_nodes_over_with_their_addresses():
    with KubeletCluster() as world:
        world.node("n1")
        world.node("n2")
        before = world.get_node("n1")["status"]
        world.kill()
        world.run.advance_by(20)
        world.start()
        world.run.advance_by(10)
        assert world.get_node("n1")["status"] == before
        assert world.node("n3")["status"]["addresses"][0]["address"] == "10.128.0.3"
        assert world.lease("n2")["spec"]["renewTime"] > "2026-01-01T00:00:20"


def test_a_node_made_again_under_its_name_gets_a_lease_of_its_own():
    with KubeletCluster() as world:
        world.node()
        world.ask("DELETE", "/api/v1/nodes/n1")
        world.run.settle()
        node = world.node()
        assert world.lease()["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]


def test_renewals_are_spread_evenly_over_the_ten_seconds():
    with KubeletCluster() as world:
        for number in range(50):
            world.node(f"n{number}")
        world.run.advance_by(60)
        times = sorted(world.lease(f"n{number}")["spec"]["renewTime"] for number in range(50))
    # 50 nodes, 100 slots of a tenth of a second: no two at the same moment.
    assert len(set(times)) == 50


@pytest.mark.parametrize("reported", [True, False])
def test_reported_heartbeats_write_once_what_written_ones_repeat(reported: bool):
    with KubeletCluster(reported=reported) as world:
        world.node()
        first = world.lease()["spec"]["renewTime"]
        version = world.get_node()["metadata"]["resourceVersion"]
        world.run.advance_by(3600)
        assert (world.lease()["spec"]["renewTime"] == first) is reported
        assert (world.get_node()["metadata"]["resourceVersion"] == version) is reported


def test_reported_heartbeats_give_the_time_of_the_last_heartbeat():
    with KubeletCluster(reported=True) as world:
        world.node()
        world.run.advance_by(100)
        assert world.liveness.is_steady("n1")
        assert world.liveness.get_last_heartbeat_s("n1") == world.run.clock.monotonic_s()
        world.annotate_node(silent="true")
        then = world.run.clock.monotonic_s()
        world.run.advance_by(100)
        assert not world.liveness.is_steady("n1")
        assert world.liveness.get_last_heartbeat_s("n1") == then
        world.ask("DELETE", "/api/v1/nodes/n1")
        world.run.settle()
        assert world.liveness.get_last_heartbeat_s("n1") is None


def test_written_heartbeats_are_reported_too_where_a_listener_exists():
    with KubeletCluster(writes=True) as world:
        world.node()
        world.run.advance_by(60)
        assert world.liveness.is_steady("n1")
        first = world.lease()["spec"]["renewTime"]
        world.run.advance_by(20)
        assert world.lease()["spec"]["renewTime"] != first

        world.annotate_node(silent="true")
        world.run.settle()
        assert not world.liveness.is_steady("n1")
