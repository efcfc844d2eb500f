"""The provider of Cluster API: node groups that are MachineDeployments, MachineSets and MachinePools.

`ClusterApiProvider(management, workload, settings)` serves the autoscaler's protocol from the objects of a management
cluster. `cache` is what it knows of them, `groups` acts on them, `machine_types` and `new_groups` make new ones.
"""

from plimsoll.nodes.providers.clusterapi.provider import ClusterApiProvider
from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings, read_settings

__all__ = ["ClusterApiProvider", "ClusterApiSettings", "read_settings"]
