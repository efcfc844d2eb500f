"""HTTP for every subsystem: responses, bodies, guards, serving, the client and Prometheus queries."""
