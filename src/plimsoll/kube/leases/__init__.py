"""Leader election on a Kubernetes Lease: at most one process acts, and it knows until when.

`election` holds the rules (pure) and `elector` applies them; everything else reads the `LeaseHolder`. An elector runs
in a thread (`elector_thread`) or as a task (`elector_task`); `leadership` runs what only a leader may run. See
docs/reference/leader-election.md.
"""

from plimsoll.kube.leases.clocks import SuspendAwareClock
from plimsoll.kube.leases.elector import LeaderElector
from plimsoll.kube.leases.elector_task import start_elector
from plimsoll.kube.leases.elector_thread import ElectorThread
from plimsoll.kube.leases.leadership import LeadershipLost, LeaseNotAcquired, run_while_leading
from plimsoll.kube.leases.lease_holder import LeaseHolder, LeaseStatus, NotLeading, Phase
from plimsoll.kube.leases.lease_lock import LeaseLock, ResourceLock
from plimsoll.kube.leases.settings import LeaseSettings, generate_identity

__all__ = [
    "ElectorThread",
    "LeaderElector",
    "LeadershipLost",
    "LeaseHolder",
    "LeaseLock",
    "LeaseNotAcquired",
    "LeaseSettings",
    "LeaseStatus",
    "NotLeading",
    "Phase",
    "ResourceLock",
    "SuspendAwareClock",
    "generate_identity",
    "run_while_leading",
    "start_elector",
]
