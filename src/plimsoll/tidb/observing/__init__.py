"""What the TiDB autoscaler reads before it decides: clusters, components, metrics sources, nodes."""
