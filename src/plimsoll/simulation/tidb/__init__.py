"""Closed-loop simulation of TiDB auto-scaling, for `plimsoll tidb simulate`."""
