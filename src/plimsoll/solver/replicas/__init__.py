"""Joint balance of replica counts and bytes over brokers. Numbers only."""
