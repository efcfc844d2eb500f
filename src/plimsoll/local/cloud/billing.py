"""The cost meter: what machines have cost, to the microsecond and without floats.

A machine costs from its start until its removal begins; one whose price is unknown costs nothing, its hours count.
While it exists, its cost follows from the machine itself; when it is removed, its cost is added to `Cloud.status.spent`
together with its uid (`settled`), in one write, before the removal. So a crash at any point neither loses nor doubles
it.
"""

from __future__ import annotations

from decimal import ROUND_HALF_EVEN, Decimal, InvalidOperation
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.value_parsing import HIGHEST_PRICE
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterable
    from datetime import datetime

    from plimsoll.objects.api.simulated_cloud import CloudStatus, Machine

_HOUR_S: Final = Decimal(3600)
_BOOKED: Final = Decimal("1e-12")
_LARGEST: Final = Decimal("1e14")
"""Larger sums could not be written to a trillionth with the 28 digits of a Decimal."""
_SHOWN: Final = Decimal("1e-6")


class Cost(Value):
    """The cost of one group (of all groups, if empty) in one currency."""

    group: str
    currency: str
    machine_seconds: Decimal = Decimal(0)
    amount: Decimal = Decimal(0)

    def __add__(self, other: Cost) -> Cost:
        return Cost(
            group=self.group,
            currency=self.currency,
            machine_seconds=self.machine_seconds + other.machine_seconds,
            amount=self.amount + other.amount,
        )

    @property
    def machine_hours(self) -> Decimal:
        return self.machine_seconds / _HOUR_S


def compute_cost(machine: Machine, *, now: datetime) -> Cost:
    """What one machine has cost up to `now`, or up to its end."""
    started, ended = machine.status.started_time, machine.status.deleted_time or now
    seconds = Decimal(0)
    if started is not None and ended > started:
        lived = ended - started
        seconds = Decimal(lived.days * 86_400 + lived.seconds) + Decimal(lived.microseconds).scaleb(-6)
    amount = (_parse_price(machine) * seconds / _HOUR_S).quantize(_BOOKED, ROUND_HALF_EVEN)
    return Cost(group=machine.spec.group, currency=machine.spec.currency, machine_seconds=seconds, amount=amount)


def _parse_price(machine: Machine) -> Decimal:
    """A price that cannot be true is unknown, and costs nothing."""
    price = machine.spec.price or 0.0
    return Decimal(str(price)) if 0 <= price <= HIGHEST_PRICE else Decimal(0)


def _read_amount(text: str) -> Decimal:
    """An amount of the books; 0 for one that the cloud cannot have written."""
    try:
        amount = Decimal(text)
    except InvalidOperation:
        return Decimal(0)
    return amount if amount.is_finite() and 0 <= amount < _LARGEST else Decimal(0)


def compute_costs_by_group(status: CloudStatus, machines: Iterable[Machine], *, now: datetime) -> tuple[Cost, ...]:
    """Everything spent, machines that are gone included, in the order of group and currency."""
    booked = [
        Cost(
            group=spending.group,
            currency=spending.currency,
            machine_seconds=_read_amount(spending.machine_seconds),
            amount=_read_amount(spending.amount),
        )
        for spending in status.spent
    ]
    settled = set(status.settled)
    running = [compute_cost(machine, now=now) for machine in machines if machine.metadata.uid not in settled]
    return _sum_costs([*booked, *running])


def sum_costs(costs: Iterable[Cost]) -> tuple[Cost, ...]:
    """The total costs by currency."""
    return _sum_costs(
        Cost(group="", currency=cost.currency, machine_seconds=cost.machine_seconds, amount=cost.amount)
        for cost in costs
    )


def build_settlement(
    status: CloudStatus, leaving: Iterable[Machine], *, present: set[str], now: datetime
) -> dict[str, Any]:
    """The books with the cost of machines that are about to go; `present` are the uids of all that are there."""
    leaving = [machine for machine in leaving if machine.metadata.uid not in status.settled]
    booked = compute_costs_by_group(status, leaving, now=now)
    uids = [uid for uid in status.settled if uid in present] + [machine.metadata.uid for machine in leaving]
    return {
        "spent": [
            {
                "group": cost.group,
                "currency": cost.currency,
                "machineSeconds": _format_amount(cost.machine_seconds),
                "amount": _format_amount(cost.amount),
            }
            for cost in booked
        ],
        "settled": sorted(set(uids)),
    }


def build_bills(costs: Iterable[Cost]) -> list[dict[str, str]]:
    """What people read in the cloud's status."""
    return [
        {
            "currency": cost.currency,
            "machineHours": _format_amount(cost.machine_hours.quantize(_SHOWN)),
            "amount": _format_amount(cost.amount.quantize(_SHOWN)),
        }
        for cost in sum_costs(costs)
    ]


def _sum_costs(costs: Iterable[Cost]) -> tuple[Cost, ...]:
    sums: dict[tuple[str, str], Cost] = {}
    for cost in costs:
        key = (cost.group, cost.currency)
        sums[key] = sums[key] + cost if key in sums else cost
    return tuple(sums[key] for key in sorted(sums))


def _format_amount(amount: Decimal) -> str:
    """Without exponent and without idle zeros."""
    plain = f"{amount:f}"
    return plain.rstrip("0").rstrip(".") if "." in plain else plain
