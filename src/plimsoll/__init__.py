"""Plimsoll keeps Kubernetes capacity at the line: clusters, nodes, groups of pods, brokers and instances."""

__version__ = "0.1.0"
