"""Data types of the TiDB autoscaler. Pure: this package imports no other package of `tidb`."""
