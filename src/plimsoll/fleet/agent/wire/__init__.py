"""What the agent reads and writes: lists of the control plane, objects of the cluster, reports."""
