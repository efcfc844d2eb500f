"""What an autoscaler would do to a cluster under a given load: the real planner and the real decisions, played time."""
