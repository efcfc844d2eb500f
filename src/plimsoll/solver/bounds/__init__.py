"""Lower bounds on cost, and their proofs."""
