"""Looks at the cluster and the cloud, and makes of it what planners and the cluster state are asked about."""
