"""The content of a Lease: lenient reading of any content, and the content that we write.

The fields are those of client-go's lease lock (`coordination.k8s.io/v1`), so that its electors and ours exclude each
other on one Lease. Reading never fails: an invalid field is replaced by a safe value and named in `problems`. Times are
compared as text and only for equality, because clocks of machines differ.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.durations import add_seconds
from plimsoll.core.values import Value
from plimsoll.kube.leases.settings import INT32_MAX
from plimsoll.objects.api.meta import MicroTime

if TYPE_CHECKING:
    from datetime import datetime

    from plimsoll.kube.leases.settings import LeaseSettings

UNREADABLE_HOLDER = "(unreadable)"


class LeaseRecord(Value):
    """One version of the Lease. `holder` is empty if the Lease is free; others respect the holder for `duration_s`."""

    version: str
    holder: str
    duration_s: float
    acquire_time: str = ""
    renew_time: str = ""
    transitions: int = 0
    problems: tuple[str, ...] = ()

    @property
    def expiry(self) -> datetime | None:
        """When the lease ends by the clock of its holder, for messages only; None: it has no time that can be read."""
        try:
            return add_seconds(MicroTime.parse(self.renew_time), self.duration_s)
        except ValueError:
            return None

    @property
    def stamp(self) -> tuple[str, str, str]:
        """The identity of a write among all writes of all holders."""
        return (self.holder, self.acquire_time, self.renew_time)


class Claim(Value):
    """What we write: all fields of client-go's record."""

    holder: str
    duration_s: int
    acquire_time: str
    renew_time: str
    transitions: int

    @property
    def stamp(self) -> tuple[str, str, str]:
        return (self.holder, self.acquire_time, self.renew_time)

    def build_spec(self) -> dict[str, Any]:
        return {
            "holderIdentity": self.holder,
            "leaseDurationSeconds": self.duration_s,
            "acquireTime": self.acquire_time,
            "renewTime": self.renew_time,
            "leaseTransitions": self.transitions,
        }


def format_micro_time(moment: datetime) -> str:
    """Always six digits: a real server refuses any other number."""
    return MicroTime.of(moment).to_text()


def read_lease_record(lease: Any, settings: LeaseSettings) -> LeaseRecord:
    """The record in a decoded Lease object."""
    problems: list[str] = []
    spec = _read_mapping(lease, "spec", problems)
    return LeaseRecord(
        version=_read_text(_read_mapping(lease, "metadata", problems), "resourceVersion", problems),
        holder=_read_holder(spec, problems),
        duration_s=_read_duration_s(spec, settings, problems),
        acquire_time=_read_text(spec, "acquireTime", problems),
        renew_time=_read_text(spec, "renewTime", problems),
        transitions=_read_transitions(spec, problems),
        problems=tuple(problems),
    )


def _read_mapping(parent: Any, field: str, problems: list[str]) -> dict[str, Any]:
    value = parent.get(field) if isinstance(parent, dict) else None
    if isinstance(value, dict):
        return value
    if value is not None:
        problems.append(f"{field}: not an object")
    return {}


def _read_text(parent: dict[str, Any], field: str, problems: list[str]) -> str:
    value = parent.get(field)
    if value is None or isinstance(value, str):
        return value or ""
    problems.append(f"{field}: not text")
    return ""


def _read_holder(spec: dict[str, Any], problems: list[str]) -> str:
    """An unreadable holder counts as a holder: a process may be acting under it."""
    value = spec.get("holderIdentity")
    if value is None or isinstance(value, str):
        return value or ""
    problems.append("holderIdentity: not text")
    return UNREADABLE_HOLDER


def _read_duration_s(spec: dict[str, Any], settings: LeaseSettings, problems: list[str]) -> float:
    value = spec.get("leaseDurationSeconds")
    if not isinstance(value, int) or isinstance(value, bool) or value < 1:
        if spec.get("holderIdentity"):
            problems.append(f"leaseDurationSeconds: {value!r:.40}, counted as {settings.duration_s}")
        return settings.duration_s
    if value > settings.longest_duration_s:
        problems.append(f"leaseDurationSeconds: {value}, counted as {settings.longest_duration_s}")
    return min(value, settings.longest_duration_s)


def _read_transitions(spec: dict[str, Any], problems: list[str]) -> int:
    value = spec.get("leaseTransitions")
    if value is None:
        return 0
    if isinstance(value, int) and not isinstance(value, bool) and 0 <= value <= INT32_MAX:
        return value
    problems.append(f"leaseTransitions: {value!r:.40}, counted as 0")
    return 0
