"""Leases, of leaders and of nodes."""

# ruff: noqa: D101 - a struct means what the API type of the same name means; docstrings only where that surprises

from plimsoll.core.values import Int64, Wire
from plimsoll.objects.api.meta import MicroTime, WireObject


class LeaseSpec(Wire):
    holder_identity: str = ""
    lease_duration_seconds: Int64 | None = None
    acquire_time: MicroTime | None = None
    renew_time: MicroTime | None = None
    lease_transitions: Int64 | None = None


class Lease(WireObject):
    spec: LeaseSpec = LeaseSpec()
