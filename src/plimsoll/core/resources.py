"""Amounts of several resources in whole numbers: cpu in millicores, everything else in units or bytes.

The scheduling rules, the planners and their reports count in these; quantities (`core.quantity`) are only how such
amounts are written in objects. A missing resource is zero and a zero is not stored, so two vectors with the same
meaning are equal. Amounts may be negative: a node can be over-committed.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Format, Quantity

CPU: Final = "cpu"
MEMORY: Final = "memory"
EPHEMERAL_STORAGE: Final = "ephemeral-storage"
PODS: Final = "pods"
LARGEST_AMOUNT: Final = 1 << 53
"""More than any machine has. Planners clip amounts to it, so that sums of a thousand stay within 64 bits."""

_LONGEST_QUOTE: Final = 40
_FIRST: Final = {CPU: 0, MEMORY: 1, EPHEMERAL_STORAGE: 2, PODS: 3}


class ResourceVector(Mapping[str, int]):
    """An immutable map of resource names to amounts, in canonical order; absent resources are 0."""

    __slots__ = ("_amounts",)

    def __init__(self, amounts: Mapping[str, int] | None = None) -> None:
        # Sorted only when read: vectors are added up a hundred times more often than shown.
        self._amounts = {name: amount for name, amount in amounts.items() if amount} if amounts else {}

    @classmethod
    def from_quantities(cls, quantities: Mapping[str, str | float], *, path: str = "") -> ResourceVector:
        """Read a resource list of an object; a bad quantity raises `InvalidQuantity` with the path of its key."""
        return cls({name: _parse_amount(name, quantity, path) for name, quantity in quantities.items()})

    @classmethod
    def read_bounded(
        cls, quantities: Mapping[str, str | float], *, path: str
    ) -> tuple[ResourceVector, tuple[InvalidQuantity, ...]]:
        """What a machine has, and the problems of amounts that no machine has: these are unknown and not included."""
        amounts: dict[str, int] = {}
        problems: list[InvalidQuantity] = []
        for name, quantity in quantities.items():
            try:
                amounts[name] = _parse_bounded_amount(name, quantity, path)
            except InvalidQuantity as error:
                problems.append(error)
        return cls(amounts), tuple(problems)

    def __getitem__(self, name: str) -> int:
        return self._amounts.get(name, 0)

    def get_amounts(self, names: Iterable[str]) -> list[int]:
        """The amounts of several resources, in their order."""
        known = self._amounts
        return [known.get(name, 0) for name in names]

    def __contains__(self, name: object) -> bool:
        return name in self._amounts

    def __iter__(self) -> Iterator[str]:
        return iter(_sort_names(tuple(self._amounts)))

    def items(self) -> ItemsView[str, int]:
        return {name: self._amounts[name] for name in _sort_names(tuple(self._amounts))}.items()

    def __len__(self) -> int:
        return len(self._amounts)

    def __eq__(self, other: object) -> bool:
        return self._amounts == other._amounts if isinstance(other, ResourceVector) else NotImplemented

    def __hash__(self) -> int:
        return hash(frozenset(self._amounts.items()))

    def __repr__(self) -> str:
        return f"ResourceVector({dict(self)!r})"

    def __add__(self, other: ResourceVector) -> ResourceVector:
        if not other._amounts:
            return self
        return self._with(other, times=1)

    def __sub__(self, other: ResourceVector) -> ResourceVector:
        return self._with(other, times=-1) if other._amounts else self

    def _with(self, other: ResourceVector, *, times: int) -> ResourceVector:
        """The sum with `times` times the other, without checking every amount for zero again."""
        total = dict(self._amounts)
        for name, amount in other._amounts.items():
            summed = total.get(name, 0) + times * amount
            if summed:
                total[name] = summed
            else:
                total.pop(name, None)
        made = ResourceVector()
        made._amounts = total
        return made

    def scale_by(self, times: int) -> ResourceVector:
        return ResourceVector({name: amount * times for name, amount in self._amounts.items()})

    def take_larger(self, other: ResourceVector) -> ResourceVector:
        """The larger of both, resource by resource."""
        names = {**self._amounts, **other._amounts}
        return ResourceVector({name: max(self[name], other[name]) for name in names})

    def replace(self, other: ResourceVector, *, names: Iterable[str]) -> ResourceVector:
        """A copy with the amounts of `other` for `names`, zeros included."""
        return ResourceVector({**self._amounts, **{name: other[name] for name in names}})

    def fits_within(self, free: ResourceVector) -> bool:
        available = free._amounts
        return all(amount <= 0 or amount <= available.get(name, 0) for name, amount in self._amounts.items())

    def find_lacking(self, free: ResourceVector) -> tuple[str, ...]:
        """The resources of which `free` has too little, in canonical order; a need of zero never lacks."""
        short = [name for name, amount in self._amounts.items() if amount > 0 and amount > free[name]]
        return _sort_names(tuple(short))

    def to_json(self) -> dict[str, str]:
        """A resource list that `from_quantities` parses: cpu "1500m", memory "8Gi"."""
        return {name: _format_amount(name, amount) for name, amount in self.items()}

    def __str__(self) -> str:
        return ", ".join(f"{name} {text}" for name, text in self.to_json().items()) or "nothing"


ZERO: Final = ResourceVector()


@lru_cache(maxsize=4096)
def _sort_names(names: tuple[str, ...]) -> tuple[str, ...]:
    """cpu, memory, ephemeral storage and pods first, the others by name."""
    return tuple(sorted(names, key=lambda name: (_FIRST.get(name, len(_FIRST)), name)))


def _parse_amount(name: str, quantity: str | float, path: str) -> int:
    try:
        return _convert_to_units(quantity, in_milli=name == CPU)
    except InvalidQuantity as error:
        raise InvalidQuantity(error.problem, path=f"{path}[{name}]" if path else name) from None


def _parse_bounded_amount(name: str, quantity: str | float, path: str) -> int:
    amount = _parse_amount(name, quantity, path)
    if 0 <= amount <= LARGEST_AMOUNT:
        return amount
    raise InvalidQuantity(f"{str(quantity)[:_LONGEST_QUOTE]!r} is out of range", path=f"{path}[{name}]")


@lru_cache(maxsize=4096, typed=True)
def _convert_to_units(quantity: str | float, *, in_milli: bool) -> int:
    """Cached: ten thousand pods have the same few quantities, and parsing one takes longer than the rest."""
    parsed = Quantity.parse(quantity)
    return parsed.to_milli() if in_milli else parsed.round_up()


@lru_cache(maxsize=4096)
def _format_amount(name: str, amount: int) -> str:
    if name == CPU:
        return str(Quantity.from_milli(amount))
    in_bytes = name in {MEMORY, EPHEMERAL_STORAGE} or name.startswith("hugepages-")
    return str(Quantity.from_int(amount, Format.BINARY_SI if in_bytes else Format.DECIMAL_SI))
