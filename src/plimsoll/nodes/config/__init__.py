"""Configuration of the node autoscaler: flags, options, policy, and where they are read from."""
