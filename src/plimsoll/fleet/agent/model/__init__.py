"""Instances and their claims, as the agent's decisions see them."""
