"""Clouds as the node autoscaler sees them: one small protocol, and what serves it.

`ports` is the protocol, `values` what is said in it. `simulated` serves it from the objects of our simulated cloud,
`externalgrpc` from any server that speaks Cluster Autoscaler's wire protocol (and serves it to others), `clusterapi`
from the objects of Cluster API. `choosing` makes the one that the flags name.
"""
