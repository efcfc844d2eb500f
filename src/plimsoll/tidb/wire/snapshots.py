"""Snapshots as JSON: the input of `plimsoll tidb plan`."""

from plimsoll.tidb.model.snapshot import Snapshot
from plimsoll.tidb.wire.decoding import read_wire


def read_snapshot(data: bytes) -> Snapshot:
    """Decode a snapshot. Raises `InvalidInput`, naming the field."""
    return read_wire(Snapshot, data)
