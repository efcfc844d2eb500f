"""The grid of faults: every read of the node autoscaler, and everything that can be wrong with an answer.

A cell is a cluster with running pods in which one read is falsified for several minutes, while pods are added. Clock
changes and a stolen lease are combined with a read that does not answer for that minute.
"""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, NamedTuple

from tests.faults.faulty_provider import PROVIDER_READS
from tests.faults.faulty_transport import Read
from tests.faults.lies import METRICS_LIES, Lie
from tests.faults.nodes.audited_clusters import AuditedCluster, owned

if TYPE_CHECKING:
    from collections.abc import Iterator

KINDS = (
    "nodes",
    "pods",
    "daemonsets",
    "poddisruptionbudgets",
    "replicasets",
    "replicationcontrollers",
    "statefulsets",
    "jobs",
    "namespaces",
    "persistentvolumeclaims",
    "persistentvolumes",
    "storageclasses",
    "csinodes",
    "priorityclasses",
    "configmaps",
)
CLOUD_KINDS = ("nodegroups", "machines")
FAULTS = tuple(lie for lie in Lie if lie not in METRICS_LIES)
READS = (
    *(Read("list", kind) for kind in (*KINDS, *CLOUD_KINDS)),
    *(Read("watch", kind) for kind in KINDS),
    *(Read("get", kind) for kind in ("nodes", "configmaps", "leases", "clouds", "nodegroups")),
    *(Read("provider", call) for call in PROVIDER_READS),
)


class Cell(NamedTuple):
    """One run."""

    read: Read
    fault: Lie

    def __str__(self) -> str:
        return f"{self.read}: {self.fault}"


class Verdict(NamedTuple):
    """What became of a run. `struck` counts falsified answers."""

    wrongful: tuple[str, ...]
    struck: int
    lost_pods: tuple[str, ...]


def list_cells() -> Iterator[Cell]:
    return (Cell(read, fault) for read in READS for fault in FAULTS)


def run_cell(cell: Cell, *, fault_minutes: float = 5) -> Verdict:
    with AuditedCluster() as cluster:
        cluster.minutes(0.75)
        before = cluster.placed_pods()
        start_fault(cluster, cell)
        cluster.minutes(0.5)
        cluster.take({"apply": [owned("more", 2, cpu="2600m")]})
        cluster.minutes(fault_minutes - 0.5)
        cluster.faults.stop()
        struck = cluster.faults.struck
        cluster.minutes(1.5)
        after = cluster.placed_pods()
        lost = tuple(sorted(name for name, node in before.items() if after.get(name) != node))
        return Verdict(wrongful=tuple(cluster.audit.wrongful), struck=struck, lost_pods=lost)


def start_fault(cluster: AuditedCluster, cell: Cell) -> None:
    """Falsify the read of a cell from now on; a clock or a lease, and then the read does not answer for a minute."""
    lie = cell.fault
    match lie:
        case Lie.CLOCK_AHEAD:
            cluster.set_clock(timedelta(days=1))
        case Lie.CLOCK_BEHIND:
            cluster.set_clock(timedelta(days=-1))
        case Lie.LEASE_STOLEN:
            cluster.lease.steal()
        case _:
            cluster.faults.start(cell.read, lie)
            return
    cluster.faults.start(cell.read, Lie.SERVER_ERROR)
