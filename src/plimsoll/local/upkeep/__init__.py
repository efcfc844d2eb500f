"""Upkeep of a cluster: what the rest of kube-controller-manager does besides running workloads.

Each module that ends a chain is one controller with its own entry point; `services` makes each,
`local.cluster` puts them together.
"""
