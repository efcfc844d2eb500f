"""The planner: cpu and storage rules, scale-out and groups."""
