"""Reasons: why a pod is unschedulable and why no new node group would help it."""
