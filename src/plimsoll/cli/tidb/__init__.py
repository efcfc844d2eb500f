"""Commands of the TiDB autoscaler: `run tidb` and `tidb plan|planner|name|validate|simulate`."""
