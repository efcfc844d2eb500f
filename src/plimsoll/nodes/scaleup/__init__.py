"""Runs scale-up: asks the planner for a plan and executes it through the provider."""
