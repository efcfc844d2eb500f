"""Load on a simulated TiDB cluster: curves, and how load spreads over instances."""
