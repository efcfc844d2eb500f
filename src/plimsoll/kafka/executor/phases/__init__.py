"""The phases of an execution: replicas between brokers, replicas between log directories, leaders."""
