"""Prometheus metrics of the node autoscaler, under the names of Cluster Autoscaler."""
