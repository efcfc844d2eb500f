"""Wire formats of the TiDB autoscaler: planning API bodies, manifests and annotations."""
