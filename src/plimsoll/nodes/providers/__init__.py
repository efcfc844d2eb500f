"""Cloud providers of the node autoscaler: one small protocol and its implementations.

`ports` is the protocol, `values` has its values. `simulated` implements it with the objects of our simulated cloud,
`externalgrpc` with any server of Cluster Autoscaler's wire protocol (and serves that protocol to others), `clusterapi`
with the objects of Cluster API. `builder` builds the provider that the flags name.
"""
