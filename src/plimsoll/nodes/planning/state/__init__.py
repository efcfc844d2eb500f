"""The cluster as the planner sees it: node arrays, pods per node, placeholder pods, resource limits."""
