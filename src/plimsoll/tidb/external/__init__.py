"""The recommender outside this process that an autoscaler may name."""
