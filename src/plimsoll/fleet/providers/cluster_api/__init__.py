"""Clusters of Cluster API: `Cluster` objects with the topology of a ClusterClass (docs/design/fleet.md 13.1).

`provider.ClusterApiProvider` implements the port; `topology` and `states` are pure.
"""
