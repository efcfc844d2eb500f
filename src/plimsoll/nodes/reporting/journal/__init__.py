"""Journal entries of the node autoscaler."""
