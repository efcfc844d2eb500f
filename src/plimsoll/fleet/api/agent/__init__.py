"""Routes of the agents in clusters."""
