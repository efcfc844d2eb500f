"""The TiDB autoscaler: how many TiKV and TiDB instances of which size a cluster has, from load and disk usage.

`planning` decides and is pure. The other packages observe, act and report.
"""
