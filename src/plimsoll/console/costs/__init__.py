"""What the cluster costs per hour over time, and what removals saved."""
