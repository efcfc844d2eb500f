"""The simulated world of a scenario: cluster, autoscaler, crashes and seeding."""
