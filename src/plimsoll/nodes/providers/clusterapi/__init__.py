"""The provider of Cluster API: node groups that are MachineDeployments, MachineSets and MachinePools.

`ClusterApiProvider(management, workload, settings)` implements the provider protocol with the objects of a management
cluster. `cache` holds the objects, `groups` changes and creates node groups, `machine_types` builds what is created.
"""

from plimsoll.nodes.providers.clusterapi.provider import ClusterApiProvider
from plimsoll.nodes.providers.clusterapi.settings import ClusterApiSettings, read_settings

__all__ = ["ClusterApiProvider", "ClusterApiSettings", "read_settings"]
