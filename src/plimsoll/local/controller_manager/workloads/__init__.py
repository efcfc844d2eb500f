"""The workload controllers: ReplicaSets, Deployments, StatefulSets, DaemonSets and Jobs."""
