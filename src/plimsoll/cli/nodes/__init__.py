"""Commands of the node autoscaler: `run nodes`, `nodes`, `plan`, `requests`, `record` and `replay`."""
