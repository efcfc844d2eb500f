"""Leader election by a Lease of Kubernetes: at most one process acts, and it knows until when.

`election` decides (pure), `electors` does, `holders` is what everybody else asks; `threads` and `tasks` are the two
places an elector can live, `leading` runs what only a leader runs. See docs/reference/leader-election.md.
"""

from plimsoll.kube.leases.clocks import SuspendAwareClock
from plimsoll.kube.leases.electors import Elector
from plimsoll.kube.leases.holders import LeaseHolder, LeaseStatus, NotLeading, Phase
from plimsoll.kube.leases.leading import LeadershipLost, run_while_leading
from plimsoll.kube.leases.lease_objects import LeaseObject, LeasePort
from plimsoll.kube.leases.settings import LeaseSettings, unique_identity
from plimsoll.kube.leases.tasks import electing
from plimsoll.kube.leases.threads import LeaseThread

__all__ = [
    "Elector",
    "LeadershipLost",
    "LeaseHolder",
    "LeaseObject",
    "LeasePort",
    "LeaseSettings",
    "LeaseStatus",
    "LeaseThread",
    "NotLeading",
    "Phase",
    "SuspendAwareClock",
    "electing",
    "run_while_leading",
    "unique_identity",
]
