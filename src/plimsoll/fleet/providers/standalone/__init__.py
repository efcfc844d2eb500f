"""Clusters that exist already, each known by a context of a kubeconfig (docs/design/fleet.md 13)."""
