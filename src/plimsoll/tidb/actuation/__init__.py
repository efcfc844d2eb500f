"""Changes to TiDB clusters: replicas, groups, drain of stores, endpoint slices, deletion."""
