"""Pure, per pod: every rule by which a pod may or may not run on a node.

Written for clarity; the fast engine is compared with it. `check_node` checks one pod and node of a `ClusterView` and
returns `Fits` or `DoesNotFit`; `compute_scheduling_outcome` writes the sentence of kube-scheduler; `explain` lists
everything that keeps a pod off each node. Each rule has a module of its own. docs/scheduling.md lists the rules,
the wording and where we differ on purpose.
"""

from plimsoll.scheduling.cluster_view import ClusterView
from plimsoll.scheduling.feasibility import DEFAULT_PROFILE, Profile, check_node, check_nodes, explain
from plimsoll.scheduling.messages import NotSchedulable, Schedulable, compute_scheduling_outcome
from plimsoll.scheduling.storage import Storage
from plimsoll.scheduling.verdicts import DoesNotFit, Fits, Refusal, Verdict

__all__ = [
    "DEFAULT_PROFILE",
    "ClusterView",
    "DoesNotFit",
    "Fits",
    "NotSchedulable",
    "Profile",
    "Refusal",
    "Schedulable",
    "Storage",
    "Verdict",
    "check_node",
    "check_nodes",
    "compute_scheduling_outcome",
    "explain",
]
