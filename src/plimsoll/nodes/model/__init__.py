"""Data types of the node autoscaler. Pure; imports no planner, provider or controller."""
