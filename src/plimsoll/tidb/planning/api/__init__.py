"""Defaults and validation of TidbClusterAutoscaler."""
