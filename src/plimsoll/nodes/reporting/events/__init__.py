"""Kubernetes Events of the node autoscaler."""
