"""Instances in a TiDB cluster: how many TiKV and TiDB instances of which size, from their load and their disks.

`planning/` decides and is pure; the rest observes, acts and tells.
"""
