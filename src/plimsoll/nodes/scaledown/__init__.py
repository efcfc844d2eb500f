"""Runs scale-down: asks the planner which nodes to remove and passes them to actuation."""
