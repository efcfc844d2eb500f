"""Machines of the simulated Cluster API: MachineDeployment, MachineSet, Machine, Node, as an autoscaler sees them.

The controllers look once a second. Of machines that are too many they remove marked ones first and then the oldest,
which is not what an autoscaler wants: only a mark saves the others. Machine deployments of a Cluster with a topology
have their machines in that cluster, and are left alone here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.api.cluster_api import (
    CLUSTER_API_GROUP,
    ClusterMachine,
    MachineDeployment,
    MachineSet,
    Scalable,
    build_cluster_api_resource,
)
from plimsoll.objects.api.nodes import Node

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client

BOOT_S: Final = 30.0
TOPOLOGY_OWNED: Final = f"topology.{CLUSTER_API_GROUP}/owned"
_MARK: Final = f"{CLUSTER_API_GROUP}/delete-machine"
_VERSION: Final = "v1beta1"
_API_VERSION: Final = f"{CLUSTER_API_GROUP}/{_VERSION}"

DEPLOYMENTS: Final = build_cluster_api_resource(MachineDeployment, group=CLUSTER_API_GROUP, version=_VERSION)
SETS: Final = build_cluster_api_resource(MachineSet, group=CLUSTER_API_GROUP, version=_VERSION)
MACHINES: Final = build_cluster_api_resource(ClusterMachine, group=CLUSTER_API_GROUP, version=_VERSION)


class MachineControllers:
    """Controllers of machines in one cluster that manages itself."""

    def __init__(self, client: Client, *, clock: Clock) -> None:
        self._client, self._clock = client, clock
        self.failing: set[str] = set()
        """Deployments whose machines never come."""
        self.is_idle = False
        self._next = 0

    async def run(self) -> None:
        """Until cancelled."""
        while True:
            if not self.is_idle:
                await self.step()
            await self._clock.sleep(1.0)

    async def step(self) -> None:
        """Look once, and do what is due."""
        listed: list[MachineDeployment] = list((await self._client.list(DEPLOYMENTS)).items)
        deployments = [deployment for deployment in listed if TOPOLOGY_OWNED not in deployment.metadata.labels]
        sets: dict[str, MachineSet] = {  # type: ignore[var-annotated]
            machine_set.metadata.name: machine_set for machine_set in (await self._client.list(SETS)).items
        }
        for deployment in deployments:
            await self._keep_set(deployment, sets.get(f"{deployment.metadata.name}-s"))
        machines: list[ClusterMachine] = list((await self._client.list(MACHINES)).items)
        for owner_set in (await self._client.list(SETS)).items:  # type: ignore[var-annotated]
            await self._keep_machines(
                owner_set, [cluster_machine for cluster_machine in machines if _is_owned_by(cluster_machine, owner_set)]
            )
        for machine in (await self._client.list(MACHINES)).items:  # type: ignore[var-annotated]
            await self._boot(machine)

    async def _keep_set(self, deployment: MachineDeployment, found: MachineSet | None) -> None:
        meta, replicas = deployment.metadata, deployment.spec.replicas or 0
        name = f"{meta.name}-s"
        if found is None:
            owners = [{"apiVersion": _API_VERSION, "kind": "MachineDeployment", "name": meta.name, "uid": meta.uid}]
            body = {"metadata": {"name": name, "ownerReferences": owners}, "spec": {"replicas": replicas}}
            await self._client.create(SETS, body, namespace=meta.namespace)
        elif found.spec.replicas != replicas:
            await self._client.merge_patch(SETS, name, {"spec": {"replicas": replicas}}, namespace=meta.namespace)

    async def _keep_machines(self, of: MachineSet, machines: list[ClusterMachine]) -> None:
        wanted, meta = of.spec.replicas or 0, of.metadata
        for _ in range(wanted - len(machines)):
            self._next += 1
            owners = [{"apiVersion": _API_VERSION, "kind": "MachineSet", "name": meta.name, "uid": meta.uid}]
            body = {"metadata": {"name": f"{meta.name}-{self._next:03}", "ownerReferences": owners}, "spec": {}}
            await self._client.create(MACHINES, body, namespace=meta.namespace)
        order = sorted(machines, key=lambda machine: (_MARK not in machine.metadata.annotations, machine.metadata.name))
        for cluster_machine in order[: max(0, len(machines) - wanted)]:
            await self._client.delete(MACHINES, cluster_machine.metadata.name, namespace=meta.namespace)
            if cluster_machine.status.node_ref is not None:
                await self._client.delete(Node, cluster_machine.status.node_ref.name)

    async def _boot(self, machine: ClusterMachine) -> None:
        meta = machine.metadata
        if machine.status.node_ref is not None or meta.creation_timestamp is None or machine.failure:
            return
        if (self._clock.now() - meta.creation_timestamp).total_seconds() < BOOT_S:
            return
        if any(meta.name.startswith(f"{name}-s-") for name in self.failing):
            await self._write_status(meta.name, meta.namespace, {"failureMessage": "no such flavour"})
            return
        provider_id = f"test:///zone/{meta.name}"
        body = {"metadata": {"name": f"node-{meta.name}"}, "spec": {"providerID": provider_id}}
        await self._client.create(Node, body)
        spec = {"spec": {"providerID": provider_id}}
        await self._client.merge_patch(MACHINES, meta.name, spec, namespace=meta.namespace)
        reference = {"kind": "Node", "name": f"node-{meta.name}"}
        await self._write_status(meta.name, meta.namespace, {"nodeRef": reference})

    async def _write_status(self, name: str, namespace: str, status: dict[str, Any]) -> None:
        body = {"status": status}
        await self._client.merge_patch(MACHINES, name, body, namespace=namespace, subresource="status")


def _is_owned_by(machine: ClusterMachine, of: Scalable) -> bool:
    return any(owner.uid == of.metadata.uid for owner in machine.metadata.owner_references)
