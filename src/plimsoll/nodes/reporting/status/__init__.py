"""The status ConfigMap of the node autoscaler: writing and reading it."""
