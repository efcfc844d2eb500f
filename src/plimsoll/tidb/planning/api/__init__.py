"""Defaults and validation of TidbClusterAutoScaler."""
