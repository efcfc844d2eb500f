"""Daemon sets on nodes that do not exist yet: docs/design/nodes.md 6.5."""

from plimsoll.nodes.planning.problem import options
from plimsoll.nodes.planning.state.daemon_overhead import DaemonSets, sum_demand
from plimsoll.objects.api.affinity import Toleration
from plimsoll.objects.api.meta import ObjectMeta, OwnerReference
from plimsoll.objects.api.nodes import Taint
from plimsoll.objects.api.pods import Pod
from tests.nodes.planning.builders import amounts, daemon_set, group, machine, nap, node, pending, pod, policy, snapshot

SIZE = amounts(4, 16)
GPU_TAINT = Taint(key="nvidia.com/gpu", value="present", effect="NoSchedule")


def names(pods: tuple[Pod, ...]) -> list[str]:
    return [pod.metadata.owner_references[0].name for pod in pods]


def test_every_daemon_set_that_would_run_there_takes_its_full_request():
    sets = DaemonSets([daemon_set("b", "200m"), daemon_set("a", "100m")])
    carried = sets.compute_overhead(node("n", SIZE))
    assert names(carried.pods) == ["a", "b"]
    assert dict(carried.demand) == {"cpu": 300, "pods": 2}
    assert sum_demand(carried.pods) == carried.demand
    assert {pod.spec.node_name for pod in carried.pods} == {"n"}


def test_selectors_and_taints_keep_daemons_off():
    sets = DaemonSets([daemon_set("gpu-only", "1", node_selector={"gpu": "yes"}), daemon_set("plain", "1")])
    assert names(sets.compute_overhead(node("n", SIZE)).pods) == ["plain"]
    tainted = node("n", SIZE, labels={"gpu": "yes"}, taints=(GPU_TAINT,))
    assert sets.compute_overhead(tainted).pods == ()
    tolerating = Toleration(operator="Exists")
    tough = DaemonSets([daemon_set("gpu-only", "1", node_selector={"gpu": "yes"}, tolerations=(tolerating,))])
    assert names(tough.compute_overhead(tainted).pods) == ["gpu-only"]


def test_kubernetes_own_tolerations_are_added():
    not_ready = Taint(key="node.kubernetes.io/not-ready", effect="NoExecute")
    assert names(DaemonSets([daemon_set("a", "1")]).compute_overhead(node("n", SIZE, taints=(not_ready,))).pods) == [
        "a"
    ]
    no_network = node("n", SIZE, taints=(Taint(key="node.kubernetes.io/network-unavailable", effect="NoSchedule"),))
    sets = DaemonSets([daemon_set("plain", "1"), daemon_set("network", "1", host_network=True)])
    assert names(sets.compute_overhead(no_network).pods) == ["network"]


def test_daemon_sets_that_cannot_be_read_run_nowhere():
    assert DaemonSets([daemon_set("a", "not a quantity")]).compute_overhead(node("n", SIZE)).pods == ()


def test_what_a_real_node_carried_is_not_counted_twice():
    owner = OwnerReference(kind="DaemonSet", name="a", controller=True)
    there = Pod(metadata=ObjectMeta(name="a-x1", namespace="kube-system", owner_references=(owner,)))
    mirror = Pod(metadata=ObjectMeta(name="proxy", annotations={"kubernetes.io/config.mirror": "x"}))
    sets = (daemon_set("a", "1"), daemon_set("b", "1"))

    def carried(*, known: bool, force: bool) -> list[str]:
        world = snapshot(
            groups=(group("g", machine("m", 4, 16), daemons=(there, mirror), daemons_are_known=known),),
            daemon_sets=sets,
        )
        [offer] = options.find_options(world, policy(force_ds=force)).options
        return [daemon.metadata.name for daemon in offer.daemons]

    assert carried(known=True, force=False) == ["a-x1", "proxy"]
    assert carried(known=False, force=False) == ["a-x1", "proxy", "b-template"]
    assert carried(known=True, force=True) == ["a-x1", "proxy", "b-template"]


def test_an_offer_has_left_what_daemons_do_not_take():
    world = snapshot(
        pending("p", pod("3500m")),
        groups=(group("g", machine("m", 4, 16)),),
        machine_types=(machine("m", 4, 16),),
        daemon_sets=(daemon_set("a", "500m"),),
    )
    offered = options.find_options(world, nap()).options
    assert [(offer.free["cpu"], offer.free["pods"], offer.exists) for offer in offered] == [
        (3500, 109, True),
        (3500, 109, False),
    ]


def test_a_type_is_not_offered_where_daemons_leave_too_little():
    world = snapshot(
        pending("p", pod("3600m")), machine_types=(machine("m", 4, 16),), daemon_sets=(daemon_set("a", "500m"),)
    )
    assert options.find_options(world, nap()).options == ()
