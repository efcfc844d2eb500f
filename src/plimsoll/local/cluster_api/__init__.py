"""A simulated Cluster API: the definitions of its kinds, and controllers that act on them as far as others see it.

`machines` keeps MachineDeployments, as the node autoscaler needs them. `clusters` keeps Clusters with a topology, as
the fleet manager needs them; what such a cluster is, it asks of a port.
"""
