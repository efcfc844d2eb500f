"""The simulated TiDB Operator: creates StatefulSets and status from TidbCluster objects."""
