"""HTTP pages of the node autoscaler: metrics, health and debug snapshots."""
