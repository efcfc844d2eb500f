"""The state of the cluster and its node groups: what was requested from the cloud, and what has arrived. Pure.

`observed` is the input. `registry.ClusterState` remembers missing instances, requested scale-ups and failures. `health`
is the result of each loop iteration, and `changes` are the repairs and reports it asks for. `templates` builds nodes
that do not exist yet; `status_document` writes the status ConfigMap. The caller passes the time.
"""
