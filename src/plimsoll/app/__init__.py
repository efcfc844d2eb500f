"""Where concrete parts meet, embedded or in production: the only place that knows them all.

`up` is the whole on one machine; `node_autoscaling` runs the node autoscaler against any cluster.
"""
