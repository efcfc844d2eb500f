"""Metrics of TiDB clusters from Prometheus."""
