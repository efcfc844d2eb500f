"""The simulated TiDB Operator: turns TidbCluster objects into StatefulSets and status."""
