"""The map of nodes and pods, in columns, and its changes."""
