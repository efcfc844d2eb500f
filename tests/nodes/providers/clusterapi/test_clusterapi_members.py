"""Machines as instances, and whose node is whose (docs/design/nodes.md 9.4)."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any

from plimsoll.local.cluster_api.machines import BOOT_S
from plimsoll.nodes.model.instances import ErrorClass, InstanceState
from plimsoll.nodes.providers.values import Instance, InstanceError, NodeRef
from tests.nodes.providers.clusterapi.capi_clusters import CapiCluster
from tests.nodes.providers.clusterapi.capi_objects import GROUP, HERE, collection, machine, scalable

if TYPE_CHECKING:
    from collections.abc import Iterator

MS = ("MachineSet", "ms")
NODE = {"nodeRef": {"kind": "Node", "name": "n"}}


@contextlib.contextmanager
def with_machines(*bodies: dict[str, Any]) -> Iterator[CapiCluster]:
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachineSet", "ms", replicas=len(bodies)))
        for body in bodies:
            world.made(body)
        yield world


def instances(world: CapiCluster) -> tuple[Instance, ...]:
    return world.do(world.refreshed("ms", "MachineSet").nodes())


def test_a_machine_that_came_up_is_an_instance_by_its_provider_id():
    with with_machines(machine("m", MS, providerID="aws:///z/i-1", status=NODE)) as world:
        assert instances(world) == (Instance(id="aws:///z/i-1", name="n"),)


def test_a_machine_without_an_instance_is_being_created_under_an_id_of_ours():
    with with_machines(machine("m", MS)) as world:
        assert instances(world) == (Instance(id=f"pending-machine-{HERE}_m", state=InstanceState.CREATING),)


def test_a_machine_that_failed_before_it_was_a_node_failed_to_be_created():
    failed = machine("m", MS, providerID="x", status={"failureMessage": "no quota"})
    with with_machines(failed) as world:
        error = InstanceError(error_class=ErrorClass.OTHER, code="ProvisioningFailed", message="no quota")
        wanted = Instance(id=f"failed-machine-{HERE}_m", state=InstanceState.CREATING, error=error)
        assert instances(world) == (wanted,)


def test_the_newer_api_reports_failures_elsewhere():
    status = {"deprecated": {"v1beta1": {"failureMessage": "no quota"}}}
    with with_machines(machine("m", MS, status=status)) as world:
        (found,) = instances(world)
        assert found.error is not None
        assert found.error.message == "no quota"


def test_a_failed_machine_that_is_being_deleted_failed_to_be_deleted():
    failed = machine("m", MS, status={"failureMessage": "stuck"}, finalizers=["a.b/c"])
    with with_machines(failed) as world:
        world.kube.ask("DELETE", f"{collection('Machine')}/m")
        (found,) = instances(world)
        assert (found.state, found.error and found.error.code) == (InstanceState.DELETING, "DeletingFailed")


def test_a_machine_that_is_going_keeps_its_id():
    with with_machines(machine("m", MS, providerID="x/1", status=NODE, finalizers=["a.b/c"])) as world:
        world.kube.ask("DELETE", f"{collection('Machine')}/m")
        assert instances(world) == (Instance(id="x/1", name="n", state=InstanceState.DELETING),)


def test_where_machines_have_no_provider_ids_their_nodes_identify_them():
    with with_machines(machine("m", MS, status=NODE)) as world:
        world.kube.made("/api/v1/nodes", {"metadata": {"name": "n"}, "spec": {"providerID": "bare://7"}})
        assert instances(world) == (Instance(id="bare://7", name="n"),)


def test_a_pool_without_machines_lists_its_instances():
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachinePool", "p", replicas=2, providerIDList=["x/1", "x/2"]))
        assert [instance.id for instance in world.do(world.refreshed("p", "MachinePool").nodes())] == ["x/1", "x/2"]


# ---- whose node


def group_of(world: CapiCluster, **node: Any) -> str | None:
    world.do(world.provider.refresh())
    ref = NodeRef(**{"provider_id": "", "name": "", **node})
    group = world.do(world.provider.node_group_for_node(ref))
    return group.id if group else None


def test_a_node_belongs_to_the_deployment_above_its_machines_set():
    with CapiCluster() as world:
        world.deployment("md", replicas=1)
        world.after(BOOT_S + 5)
        (name,) = world.nodes()
        ref = world.node(name)
        assert group_of(world, provider_id=ref.provider_id, name=name) == f"MachineDeployment/{HERE}/md"
        assert world.do(world.provider.has_instance(ref)) is True


def test_a_node_is_known_by_the_end_of_its_provider_id():
    with with_machines(machine("m", MS, providerID="aws:///eu-1a/i-1")) as world:
        assert group_of(world, provider_id="aws:///eu-1/eu-1a/i-1") == f"MachineSet/{HERE}/ms"


def test_a_node_is_known_by_the_reference_of_its_machine():
    with with_machines(machine("m", MS, status=NODE)) as world:
        assert group_of(world, name="n") == f"MachineSet/{HERE}/ms"


def test_a_node_is_known_by_what_cluster_api_wrote_on_it():
    with with_machines(machine("m", MS)) as world:
        written = {f"{GROUP}/machine": "m", f"{GROUP}/cluster-namespace": HERE}
        assert group_of(world, name="n", annotations=written) == f"MachineSet/{HERE}/ms"


def test_an_id_of_ours_leads_back_to_its_machine():
    with with_machines(machine("m", MS)) as world:
        (pending,) = instances(world)
        assert group_of(world, provider_id=pending.id) == f"MachineSet/{HERE}/ms"


def test_two_machines_of_one_node_name_belong_to_no_group():
    bodies = [machine(name, MS, providerID=f"x/{name}", status=NODE) for name in ("a", "b")]
    with with_machines(*bodies) as world:
        assert group_of(world, name="n") is None
        assert group_of(world, provider_id="x/a", name="n") == f"MachineSet/{HERE}/ms"


def test_a_node_of_a_pool_is_known_by_the_pools_list():
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachinePool", "p", replicas=1, providerIDList=["x/1"]))
        assert group_of(world, provider_id="x/1") == f"MachinePool/{HERE}/p"


def test_others_nodes_are_not_ours():
    with with_machines(machine("by-hand", providerID="x/1")) as world:
        assert group_of(world, provider_id="x/1") is None
        assert group_of(world, provider_id="x/2") is None
        assert world.do(world.provider.has_instance(NodeRef(provider_id="x/2", name="x"))) is False


def test_a_node_of_a_group_that_is_not_autoscaled_has_no_group():
    with CapiCluster(runs=False) as world:
        world.made(scalable("MachineSet", "ms", replicas=1, annotations={}))
        world.made(machine("m", MS, providerID="x/1"))
        assert group_of(world, provider_id="x/1") is None


def test_one_odd_machine_does_not_hide_the_others():
    odd = machine("odd", MS)
    odd["spec"]["providerID"] = 7
    with with_machines(odd, machine("m", MS, providerID="x/1")) as world:
        assert [instance.id for instance in instances(world)] == ["x/1"]
