"""The write path: identity, parent checks, per-key locks and the guarded update."""
