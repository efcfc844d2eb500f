"""Numbers and times as people read them: the one style of tables, messages and logs. Pure.

Amounts of resources have the units of Kubernetes, money has a currency, a time has its zone, and a limit that is none
says so.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.resources import CPU, EPHEMERAL_STORAGE, MEMORY

if TYPE_CHECKING:
    from datetime import datetime

DEFAULT_CURRENCY: Final = "USD"
"""The currency of prices that name none: those of the built-in catalogues."""
NO_LIMIT: Final = 2**31 - 1
"""The number by which Kubernetes and Cluster Autoscaler write "no limit"."""
_BINARY: Final = ((1 << 50, "Pi"), (1 << 40, "Ti"), (1 << 30, "Gi"), (1 << 20, "Mi"), (1 << 10, "Ki"))
_AGES: Final = ((86_400, "d"), (3_600, "h"), (60, "min"))


def format_amount(resource: str, amount: int) -> str:
    """An amount of a resource: 3.92 cores, 773.4Gi of memory, 8 of anything else."""
    if resource == CPU:
        return _trim(f"{amount / 1000:.3f}" if abs(amount) < 1000 else f"{amount / 1000:.2f}")
    if resource in {MEMORY, EPHEMERAL_STORAGE} or resource.startswith("hugepages-"):
        for size, unit in _BINARY:
            if abs(amount) >= size:
                return f"{_trim(f'{amount / size:.1f}')}{unit}"
    return str(amount)


def format_bytes(amount: float) -> str:
    """A number of bytes in decimal units, as disks are sold: 640 GB, 1.5 TB, 12 B."""
    for power, unit in ((18, "EB"), (15, "PB"), (12, "TB"), (9, "GB"), (6, "MB"), (3, "kB")):
        if abs(amount) >= 10**power:
            return f"{_trim(f'{amount / 10**power:.1f}')} {unit}"
    return f"{amount:.0f} B"


def format_count(count: int, noun: str, plural: str = "") -> str:
    """A number of things: 1 broker, 2 brokers. `plural` is given where it is not the noun with an s."""
    return f"{count} {choose_form(count, noun, plural or f'{noun}s')}"


def choose_form(count: int, singular: str, plural: str) -> str:
    """The form of a word beside a number: 1 moves, 2 move."""
    return singular if count == 1 else plural


def format_money(amount: float, currency: str = DEFAULT_CURRENCY) -> str:
    """An amount with its currency: 11.29 USD. Below 1 it has four digits, because clouds give prices so: 0.0425 USD."""
    digits = 4 if 0 < abs(amount) < 1 else 2
    return f"{amount:,.{digits}f} {currency}"


def format_limit(limit: int) -> str:
    return "no limit" if limit >= NO_LIMIT else str(limit)


def format_time(moment: datetime) -> str:
    """A time in UTC, with its zone: 2026-01-31 12:00:00 UTC."""
    return f"{moment:%Y-%m-%d %H:%M:%S} UTC"


def format_age(seconds: float) -> str:
    """The largest unit: 15 s, 3 min, 5 h, 2 d."""
    for size, unit in _AGES:
        if seconds >= size:
            return f"{seconds // size:.0f} {unit}"
    return f"{seconds:.0f} s"


def _trim(number: str) -> str:
    return number.rstrip("0").rstrip(".")
