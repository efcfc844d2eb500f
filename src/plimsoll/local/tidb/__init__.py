"""Simulated TiDB clusters on any API server: their operator, their PD, the load on them, and what monitoring measures.

`SimulatedTidb` (`simulated`) is the whole. It meets the autoscaler only in objects, in PD's HTTP API and in queries to
Prometheus, all of which it answers in memory as well as over a socket.
"""
