"""What the cluster and its groups are at, between what was asked of the cloud and what has arrived. Pure.

`observed` is what goes in, `registry.ClusterState` remembers (since when an instance is missing, what growth was asked
for, what failed), `health` is what comes out each turn; `changes` are the things it wants done and told. `templates`
and `upcoming` make the nodes that are not there yet; `status_document` writes the status ConfigMap. Time is given in.
"""
