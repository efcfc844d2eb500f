"""The provider `ocm`: clusters of OpenShift Cluster Manager, over its HTTP API (docs/design/fleet.md 11)."""
