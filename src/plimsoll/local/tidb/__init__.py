"""Simulated TiDB clusters on any API server: operator, PD, load and monitoring.

`SimulatedTidb` (`simulated`) combines them. The autoscaler reaches them only through objects, PD's HTTP API and
Prometheus queries, in memory or over a socket.
"""
