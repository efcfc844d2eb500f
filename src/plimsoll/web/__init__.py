"""HTTP: client, answers, guards and Prometheus queries."""
