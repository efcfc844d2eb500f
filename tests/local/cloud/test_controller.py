"""The cloud makes its objects true: machines of targets, nodes of machines, and back."""

from __future__ import annotations

from plimsoll.local.cloud.controller import CloudSettings
from plimsoll.objects.api.nodes import Node
from plimsoll.objects.api.simulated_cloud import GROUP_LABEL, Machine, NodeGroup
from tests.local.cloud.builders import CloudCluster, at


def test_a_target_becomes_nodes_named_after_the_group_and_counted_from_0():
    with CloudCluster() as world:
        world.group("g", target=3)
        assert world.nodes() == ["g-0", "g-1", "g-2"]
        assert world.states() == {"g-0": "running", "g-1": "running", "g-2": "running"}


def test_a_boot_time_of_0_gives_ready_nodes_without_time_passing():
    with CloudCluster(settings=CloudSettings()) as world:
        world.group("g", target=1)
        ready = {condition.type: condition.status for condition in world.node("g-0").status.conditions}["Ready"]
        assert (ready, world.clock.now()) == ("True", at(0))


def test_a_node_comes_when_its_machine_has_booted_and_is_left_to_the_kubelet():
    with CloudCluster(settings=CloudSettings()) as world:
        world.group("g", target=1, bootSeconds=40)
        world.after(39)
        assert (world.nodes(), world.states()) == ([], {"g-0": "creating"})
        world.after(1)
        node = world.node("g-0")
        assert {condition.type: condition.status for condition in node.status.conditions}["Ready"] == "False"
        assert [taint.key for taint in node.spec.taints] == ["node.kubernetes.io/not-ready"]
        assert world.states() == {"g-0": "running"}


def test_a_node_says_what_it_is():
    taint = {"key": "dedicated", "value": "ml", "effect": "NoSchedule"}
    with CloudCluster(region="moon") as world:
        world.group("g", target=1, template={"labels": {"team": "red"}, "taints": [taint]}, zones=["b"])
        node = world.node("g-0")
        assert node.metadata.labels == {
            "kubernetes.io/hostname": "g-0",
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "amd64",
            "topology.kubernetes.io/region": "moon",
            "topology.kubernetes.io/zone": "b",
            "node.kubernetes.io/instance-type": "small",
            "beta.kubernetes.io/os": "linux",
            "beta.kubernetes.io/arch": "amd64",
            "beta.kubernetes.io/instance-type": "small",
            "failure-domain.beta.kubernetes.io/region": "moon",
            "failure-domain.beta.kubernetes.io/zone": "b",
            "cloud.plimsoll.io/capacity-type": "on-demand",
            "cloud.plimsoll.io/node-group": "g",
            "plimsoll.io/virtual": "true",
            "team": "red",
        }
        assert node.spec.provider_id == "plimsoll://moon/b/g-0"
        assert [(item.key, item.value, item.effect) for item in node.spec.taints] == [("dedicated", "ml", "NoSchedule")]
        assert node.status.capacity == {"cpu": "2", "memory": "8Gi", "pods": "110"}
        assert node.status.allocatable == node.status.capacity


def test_a_group_may_describe_its_machines_itself():
    with CloudCluster() as world:
        capacity = {"cpu": "4", "memory": "16Gi", "pods": 110}
        world.group("g", target=1, machineType=None, template={"capacity": capacity, "allocatable": {"cpu": "3900m"}})
        status = world.node("g-0").status
        assert status.capacity == {"cpu": "4", "memory": "16Gi", "pods": "110"}
        assert status.allocatable == {"cpu": "3900m", "memory": "16Gi", "pods": "110"}


def test_machines_are_spread_over_the_zones():
    with CloudCluster(zones=["a", "b", "c"]) as world:
        world.group("g", target=7)
        zones = [machine.spec.zone for machine in world.machines().values()]
        assert sorted(zones.count(zone) for zone in "abc") == [2, 2, 3]


def test_scaling_with_kubectl_works():
    with CloudCluster() as world:
        world.group("g", target=1)
        world.do(world.client.scale(NodeGroup, "g", 3))
        assert world.nodes() == ["g-0", "g-1", "g-2"]
        world.do(world.client.scale(NodeGroup, "g", 1))
        assert world.nodes() == ["g-0"]


def test_a_lower_target_takes_what_does_not_work_yet_first():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.do(world.client.merge_patch(NodeGroup, "g", {"spec": {"target": 4, "bootSeconds": 60}}))
        world.do(world.client.scale(NodeGroup, "g", 2))
        assert world.states() == {"g-0": "running", "g-1": "running"}


def test_names_are_never_used_twice():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.do(world.cloud.delete_nodes("g", ["g-1"]))
        world.do(world.cloud.increase_size("g", 1))
        assert world.nodes() == ["g-0", "g-2"]
        world.stop()
        world.start()
        world.do(world.cloud.delete_nodes("g", ["g-2"]))
        world.do(world.cloud.increase_size("g", 1))
        assert world.nodes() == ["g-0", "g-3"]


def test_the_status_of_a_group_counts_its_machines():
    with CloudCluster(stock=[{"name": "s", "machineType": "small", "machines": 2}]) as world:
        world.group("g", target=3, bootSeconds=5)
        status = world.get_group().status
        assert (status.machines, status.creating, status.failed, status.next_number) == (3, 2, 1, 3)
        assert status.message == "out of stock: small, 2 in all"
        world.after(5)
        assert world.get_group().status.running == 2


def test_a_machine_deleted_by_hand_is_replaced():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.do(world.client.delete(Machine, "g-0"))
        assert world.nodes() == ["g-1", "g-2"]
        assert list(world.machines()) == ["g-1", "g-2"]


def test_a_node_deleted_by_hand_leaves_its_machine_running_without_one():
    with CloudCluster() as world:
        world.group("g", target=1)
        world.do(world.client.delete(Node, "g-0"))
        world.after(3600)
        assert (world.nodes(), world.states()) == ([], {"g-0": "running"})


def test_machines_go_with_their_group():
    with CloudCluster() as world:
        world.group("g", target=2)
        world.group("h", target=1)
        world.do(world.client.delete(NodeGroup, "g"))
        assert (world.nodes(), list(world.machines())) == (["h-0"], ["h-0"])


def test_nodes_that_were_there_before_are_adopted_and_wanted():
    with CloudCluster(started=False) as world:
        for name in ("n1", "n2"):
            world.kube.made("/api/v1/nodes", {"metadata": {"name": name, "labels": {GROUP_LABEL: "g"}}})
        world.group("g", target=1)
        world.start()
        assert world.states() == {"n1": "running", "n2": "running"}
        assert world.get_group().spec.target == 2
        world.do(world.cloud.delete_nodes("g", ["n1"]))
        world.do(world.cloud.increase_size("g", 1))
        assert world.nodes() == ["g-0", "n2"]


def test_a_node_of_the_same_name_is_not_taken_for_ours():
    with CloudCluster(started=False) as world:
        world.kube.made("/api/v1/nodes", {"metadata": {"name": "g-0"}})
        world.group("g", target=1)
        world.start()
        assert world.nodes() == ["g-0", "g-1"]
        assert list(world.machines()) == ["g-1"]


def test_a_restart_takes_boots_over_where_they_were():
    with CloudCluster() as world:
        world.group("g", target=1, bootSeconds=60)
        world.after(50)
        world.stop()
        world.start()
        world.after(9)
        assert world.nodes() == []
        world.after(1.1)
        assert world.nodes() == ["g-0"]


def test_what_fell_due_while_the_cloud_was_down_happens_at_its_start():
    with CloudCluster() as world:
        world.group("g", target=1, bootSeconds=60)
        world.stop()
        world.after(3600)
        world.start()
        assert world.nodes() == ["g-0"]


def test_a_type_that_is_not_sold_fails_its_machines_until_it_is():
    with CloudCluster() as world:
        world.group("g", target=1, machineType="huge")
        error = world.machines()["g-0"].status.error
        assert error is not None
        assert (error.code, error.message) == ("MACHINE_TYPE_NOT_FOUND", "machine type 'huge' is not sold here")
        world.patch_cloud(machineTypes=[{"name": "huge", "cpu": 64, "memory": "1Ti", "price": 9}])
        assert world.states() == {"g-0": "running"}
        assert world.machines()["g-0"].spec.price == 9


def test_what_cannot_be_used_of_a_cloud_is_reported_in_its_status():
    wrong = {"name": "w", "cpu": "x", "memory": "1Gi", "price": 1}
    quota = {"name": "q", "limit": "many"}
    with CloudCluster(catalogues=["gce-n1", "gone"], machineTypes=[wrong], quotas=[quota]) as world:
        first, second, third = world.get_cloud().status.problems
        assert first.startswith("spec.catalogues[1]: there is no catalogue 'gone'; shipped are aws-")
        assert second.startswith("spec.machineTypes[0].cpu: 'x': quantities must match")
        assert third == "spec.quotas[0].limit: 'many' is not a quantity"


def test_machine_types_that_are_not_offered_are_reported_wherever_they_are_named():
    stock = [{"name": "s", "machineType": "nope", "machines": 0}]
    boots = [{"name": "b", "seconds": 1}, {"name": "c", "machineType": "nix", "seconds": 1}]
    quotas = [{"name": "q", "limit": 1, "machineType": "small"}, {"name": "r", "limit": 1, "machineType": "nil"}]
    with CloudCluster(stock=stock, boots=boots, quotas=quotas) as world:
        assert world.get_cloud().status.problems == (
            "spec.stock[0].machineType: machine type 'nope' is not sold here",
            "spec.quotas[1].machineType: machine type 'nil' is not sold here",
            "spec.boots[1].machineType: machine type 'nix' is not sold here",
        )
        world.patch_cloud(stock=[], boots=[], quotas=[])
        assert world.get_cloud().status.problems == ()


def test_without_a_cloud_object_one_is_made():
    with CloudCluster(started=False) as world:
        world.kube.ask("DELETE", "/apis/cloud.plimsoll.io/v1alpha1/clouds/cloud")
        world.group("g", target=1, machineType=None, template={"capacity": {"cpu": 1}})
        world.start()
        assert world.nodes() == ["g-0"]


def test_two_runs_give_the_same_bytes():
    def story() -> str:
        with CloudCluster(boots=[{"name": "slow", "every": 2, "seconds": 90}]) as world:
            world.group("g", target=4, bootSeconds=10)
            world.group("h", target=2, machineType="large")
            world.after(30)
            world.do(world.cloud.delete_nodes("g", ["g-1"]))
            world.after(300)
            return world.everything()

    assert story() == story()


def test_an_idle_hour_writes_nothing_but_twelve_bills():
    with CloudCluster() as world:
        world.group("g", target=5)
        before = int(world.kube.ask("GET", "/api/v1/nodes")["metadata"]["resourceVersion"])
        world.after(3600)
        after = int(world.kube.ask("GET", "/api/v1/nodes")["metadata"]["resourceVersion"])
        assert after - before == 12
