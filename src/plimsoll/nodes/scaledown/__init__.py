"""Runs scale-down: asks the planner which nodes to remove and hands them to actuation."""
