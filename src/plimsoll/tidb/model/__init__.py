"""Data types of the TiDB autoscaler. Pure; imports no planner, client or controller."""
