"""What a node costs: in money, and in what planning counts beside money. Pure.

`Price.per_hour` is for reports and for `costPerHour`; `Price.planning` has the preferences of specs/nodes.md 8.4 that
can be told node by node: groups that exist over new ones, and few nodes over many where money does not decide. The
others (no accelerators for pods that ask for none, spot only where wanted) are in `permissions`, tiers come from the
priority expander. Offers carry both prices; the expanders of the compatible planner use the money alone.

Public: `price_of`, `group_prices`, `prices_are_known`, `estimated_price`, `read_overlay`.

The file of `--price-overlay`: machine type to price or factor. For whoever runs, plays or plans.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.core.resources import CPU, MEMORY, ResourceVector
from plimsoll.nodes.config.flags import InvalidOptions
from plimsoll.nodes.model.gpus import gpu_count
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.nodes.config.policy import Policy
    from plimsoll.nodes.model.snapshot import NodeGroup, Snapshot


CORE_PRICE: Final = 0.033174
GIB_PRICE: Final = 0.004446
GPU_PRICE: Final = 0.7
"""An hour's, from the upstream pricing proposal: they stand in where nobody knows the price, so that cost is waste."""
NEW_GROUP_PENALTY: Final = 0.02
"""Of a node's price: a group that has to be made must be that much cheaper than one that is there."""
NODE_PENALTY: Final = 1e-5
"""An hour's, for being one more node: decides only between plans of the same price."""
_MILLI: Final = 1000
_GIB: Final = 1 << 30


@dataclass(frozen=True, slots=True, kw_only=True)
class Overlay:
    """What the operator says of a machine type's price: it is `price`, or `factor` times what it would be."""

    price: float | None = None
    factor: float = 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """Of one node, for an hour."""

    per_hour: float
    planning: float


def price_of(
    machine_type: str,
    capacity: ResourceVector,
    *,
    given: float | None,
    exists: bool,
    overlay: Mapping[str, Overlay] | None = None,
) -> Price:
    """The overlay's word first, then what the provider says, then the estimate."""
    known = estimated_price(capacity) if given is None else given
    said = (overlay or {}).get(machine_type, Overlay()) if machine_type else Overlay()
    money = known * said.factor if said.price is None else said.price
    return Price(per_hour=money, planning=money * (1.0 if exists else 1.0 + NEW_GROUP_PENALTY) + NODE_PENALTY)


def group_prices(groups: Iterable[NodeGroup], policy: Policy) -> dict[str, float]:
    """By id, an hour's of one node."""
    found: dict[str, float] = {}
    for group in groups:
        status = group.template.status
        capacity = ResourceVector.from_quantities(status.capacity or status.allocatable, path="status.capacity")
        price = price_of(group.machine_type, capacity, given=group.price_per_hour, exists=True, overlay=policy.overlay)
        found[group.id] = price.per_hour
    return found


def estimated_price(capacity: ResourceVector) -> float:
    cores, gibibytes = capacity[CPU] / _MILLI, capacity[MEMORY] / _GIB
    return CORE_PRICE * cores + GIB_PRICE * gibibytes + GPU_PRICE * gpu_count(capacity)


def prices_are_known(snapshot: Snapshot, overlay: Mapping[str, Overlay]) -> bool:
    """Whether anybody said what anything costs: then the estimate fills the gaps, and cost is the default expander."""
    if overlay or any(group.price_per_hour is not None for group in snapshot.groups):
        return True
    return any(kind.price_per_hour is not None for kind in snapshot.machine_types)


def read_overlay(mapping: Mapping[str, Any], *, path: str = "price-overlay") -> dict[str, Overlay]:
    """Machine type to a price, or to `{price: ...}` or `{factor: ...}`; every mistake at once."""
    problems: list[tuple[str, str]] = []
    found: dict[str, Overlay] = {}
    for name, said in mapping.items():
        read = _overlay(said)
        if read is None:
            problems.append((f"{path}.{name}", "must be a price, {price: number} or {factor: number}, none negative"))
        else:
            found[str(name)] = read
    if problems:
        raise InvalidOptions(problems)
    return found


def _overlay(said: Any) -> Overlay | None:
    if isinstance(said, dict):
        field = next(iter(said), "")
        if len(said) != 1 or field not in {"price", "factor"} or not _is_amount(said[field]):
            return None
        return Overlay(**{field: float(said[field])})
    return Overlay(price=float(said)) if _is_amount(said) else None


def _is_amount(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < math.inf


def overlay_from(filename: str, *, path: str) -> dict[str, Overlay]:
    """What the file holds, nothing without a name; `path` is the option that names it."""
    if not filename:
        return {}
    try:
        return overlay_in(Path(filename).read_bytes(), source=filename)
    except OSError as error:
        raise InvalidInput(f"{filename} cannot be read: {error.strerror}", path=path) from error


def overlay_in(data: bytes, *, source: str) -> dict[str, Overlay]:
    """Raises `InvalidInput` with the file and the place in it."""
    documents = [document for _, document in read_documents(data, source=source)]
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise InvalidInput("must be one map: machine type to price", path=source)
    return dict(read_overlay(documents[0], path=source))
