"""What the reconcilers ask of Cruise Control, and the client that asks a real one or our own engine."""
