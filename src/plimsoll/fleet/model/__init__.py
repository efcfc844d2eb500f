"""The data of the fleet manager: rows, statuses, policy and decisions. It imports nothing else of the subsystem."""
