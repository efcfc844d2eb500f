"""The simulated world of a scenario: cluster, autoscaler, crashes, initial objects and outcome."""
