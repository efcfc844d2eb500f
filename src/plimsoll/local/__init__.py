"""Every simulated thing, each behind the wire protocol or the port that its user declares."""
