"""Decisions of the TiDB autoscaler. Pure: no I/O, no clock."""
