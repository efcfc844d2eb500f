"""The grid of faults for ProvisioningRequests: every read of the request controller, and everything that can be wrong.

In a cell an atomic request has bought two nodes and booked them, no pod uses them yet, and one read is falsified for
several minutes, in which a node without a booking would be removed. It is wrongful to remove a booked node, or to
revoke the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.objects.api.simulated_cloud import GROUP_LABEL
from tests.faults.faulty_transport import Read
from tests.faults.nodes.audited_clusters import AuditedCluster
from tests.faults.nodes.grid import FAULTS, KINDS, Cell, Verdict, start_fault
from tests.nodes.autoscaler.loop_scenarios import containers

if TYPE_CHECKING:
    from collections.abc import Iterator

    from tests.nodes.autoscaler.loop_scenarios import Json

REQUEST_KINDS = ("provisioningrequests", "provisioningclasses", "podtemplates", "limitranges", "priorityclasses")
SHARED_KINDS = tuple(kind for kind in ("nodes", "pods") if kind in KINDS)
READS = (
    *(Read("list", kind) for kind in (*REQUEST_KINDS, *SHARED_KINDS)),
    *(Read("watch", kind) for kind in (*REQUEST_KINDS, *SHARED_KINDS)),
    Read("get", "nodes"),
    Read("provider", "nodes"),
    Read("provider", "target_size"),
)
PATH = "/apis/autoscaling.x-k8s.io/v1/namespaces/default/provisioningrequests/booked"


def list_objects() -> list[Json]:
    spec = {**containers("2600m"), "nodeSelector": {GROUP_LABEL: "g"}}
    return [
        {"apiVersion": "v1", "kind": "PodTemplate", "metadata": {"name": "large"}, "template": {"spec": spec}},
        {
            "apiVersion": "autoscaling.x-k8s.io/v1",
            "kind": "ProvisioningRequest",
            "metadata": {"name": "booked"},
            "spec": {
                "provisioningClassName": "best-effort-atomic-scale-up.autoscaling.x-k8s.io",
                "podSets": [{"podTemplateRef": {"name": "large"}, "count": 2}],
            },
        },
    ]


def list_cells() -> Iterator[Cell]:
    return (Cell(read, fault) for read in READS for fault in FAULTS)


def run_cell(cell: Cell, *, fault_minutes: float = 5) -> Verdict:
    with AuditedCluster(**{"enable-provisioning-requests": True}) as cluster:
        cluster.minutes(0.75)
        cluster.take({"apply": list_objects()})
        cluster.minutes(0.75)
        before = cluster.placed_pods()
        booked = cluster.list_empty_nodes("g")
        assert len(booked) == 2, booked
        assert find_conditions(cluster)["Provisioned"] == "True"
        cluster.audit.booked = booked
        start_fault(cluster, cell)
        cluster.minutes(fault_minutes)
        cluster.faults.stop()
        struck = cluster.faults.struck
        cluster.minutes(1)
        after = cluster.placed_pods()
        lost = tuple(sorted(name for name, node in before.items() if after.get(name) != node))
        wrongful = [*cluster.audit.wrongful]
        conditions = find_conditions(cluster)
        if conditions.get("Provisioned") != "True" or "True" in (
            conditions.get("Failed"),
            conditions.get("CapacityRevoked"),
        ):
            wrongful.append(f"the request was revoked: {conditions}")
        return Verdict(wrongful=tuple(wrongful), struck=struck, lost_pods=lost)


def find_conditions(cluster: AuditedCluster) -> dict[str, Any]:
    request = cluster.run_now(cluster.client.get_json(PATH))
    return {condition["type"]: condition["status"] for condition in request.get("status", {}).get("conditions", ())}
