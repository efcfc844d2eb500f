"""Reports of the TiDB autoscaler: conditions, status, Events, metrics and journal."""
