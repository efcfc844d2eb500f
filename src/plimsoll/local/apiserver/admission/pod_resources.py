"""The total requests and limits of a pod, in exact quantities, as LimitRanges and ResourceQuotas compare them.

The formula is the scheduler's (see `plimsoll.scheduling.rules.resources_fit`): containers and sidecars run together, an
init container runs beside the sidecars started before it, and the larger sum counts; pod-level resources take
precedence. Here limits are needed as well, in the units of the objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal

from plimsoll.core.quantity import Quantity

if TYPE_CHECKING:
    from collections.abc import Mapping

Json = dict[str, Any]
Amounts = dict[str, Quantity]
Field = Literal["requests", "limits"]


def parse_quantities(written: Mapping[str, Any] | None) -> Amounts:
    return {name: Quantity.parse(amount) for name, amount in (written or {}).items()}


def compute_container_amounts(container: Json, field: Field) -> Amounts:
    return parse_quantities((container.get("resources") or {}).get(field))


def compute_pod_amounts(spec: Json, field: Field, *, overhead: bool) -> Amounts:
    """Requests or limits of the whole pod; overhead adds to a limit only where there is one."""
    running: Amounts = {}
    for container in spec.get("containers") or ():
        running = add_amounts(running, compute_container_amounts(container, field))
    starting: Amounts = {}
    sidecars: Amounts = {}
    for container in spec.get("initContainers") or ():
        own = add_amounts(compute_container_amounts(container, field), sidecars)
        if container.get("restartPolicy") == "Always":
            sidecars = own
        else:
            starting = _take_larger_amounts(starting, own)
    total = _take_larger_amounts(add_amounts(running, sidecars), starting)
    for name, amount in compute_container_amounts(spec, field).items():
        if name in {"cpu", "memory"} or name.startswith("hugepages-"):
            total[name] = amount
    if overhead:
        extra = parse_quantities(spec.get("overhead"))
        total = add_amounts(
            total, extra if field == "requests" else {name: extra[name] for name in extra if total.get(name)}
        )
    return total


def add_amounts(amounts: Amounts, other: Amounts) -> Amounts:
    return amounts | {name: amounts[name] + amount if name in amounts else amount for name, amount in other.items()}


def subtract_amounts(amounts: Amounts, other: Amounts) -> Amounts:
    return amounts | {name: amounts.get(name, Quantity(0)) - amount for name, amount in other.items()}


def _take_larger_amounts(amounts: Amounts, other: Amounts) -> Amounts:
    return amounts | {name: amount for name, amount in other.items() if name not in amounts or amount > amounts[name]}
