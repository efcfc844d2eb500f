"""Reads what the TiDB autoscaler needs: clusters, components, metrics sources and nodes."""
