"""Node scoring: preferences, plugin scores and the final ranking."""
