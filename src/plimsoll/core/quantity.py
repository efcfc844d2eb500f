"""Kubernetes quantities ("1500m", "2Gi", "1e3"), exact.

A quantity is a whole number of billionths (`nano`), because Kubernetes keeps no finer precision: anything finer is
rounded away from zero, "under the theory that you want some resources if you asked for some". Nothing here is a float.

Text and canonical output follow Kubernetes' own parser: the largest value is 2^63 - 1 and what is larger is capped to
it. One deliberate difference: an exponent beyond ±63 is an error. Kubernetes caps 1e400 silently, which is never
intended.
"""

from __future__ import annotations

import re
from enum import Enum
from fractions import Fraction
from functools import lru_cache, total_ordering
from typing import Final

from plimsoll.core.errors import InvalidQuantity

NANO: Final = 10**9
_LARGEST: Final = (2**63 - 1) * NANO
_LARGEST_EXPONENT: Final = 63
_LONGEST_TEXT: Final = 256

_GRAMMAR: Final = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_SHAPE: Final = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?([eEinumkKMGTP]*[-+]?[0-9]*)", re.ASCII)
_EXPONENT: Final = re.compile(r"[eE]([+-]?[0-9]+)", re.ASCII)

_BINARY: Final = {"Ki": 10, "Mi": 20, "Gi": 30, "Ti": 40, "Pi": 50, "Ei": 60}
_DECIMAL: Final = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIX: Final = {exponent: suffix for suffix, exponent in _DECIMAL.items()}


class Format(Enum):
    """The suffix family in which a quantity was written, so that 1Gi is not printed as 1073741824."""

    BINARY_SI = "BinarySI"
    DECIMAL_SI = "DecimalSI"
    DECIMAL_EXPONENT = "DecimalExponent"


@total_ordering
class Quantity:
    """An exact amount. Equal amounts are equal however they are written: 1000m == 1."""

    __slots__ = ("format", "nano")

    nano: int
    format: Format

    def __init__(self, nano: int, written_as: Format = Format.DECIMAL_SI) -> None:
        object.__setattr__(self, "nano", max(-_LARGEST, min(_LARGEST, nano)))
        object.__setattr__(self, "format", written_as)

    def __setattr__(self, name: str, value: object) -> None:
        raise AttributeError(f"a Quantity cannot be changed (tried to set {name})")

    def __reduce__(self) -> tuple[type[Quantity], tuple[int, Format]]:
        return Quantity, (self.nano, self.format)

    @classmethod
    def parse(cls, text: str | float) -> Quantity:
        """Parse a value of a manifest: a string, or the number that YAML makes of `cpu: 2`."""
        if isinstance(text, bool) or not isinstance(text, str | int | float):
            raise InvalidQuantity(f"a quantity is a number or a text like '500m', not {text!r}")
        if isinstance(text, int) and abs(text) >= 10**_LONGEST_TEXT:
            raise InvalidQuantity(f"a whole number of more than {_LONGEST_TEXT} digits")
        written = text.strip() if isinstance(text, str) else repr(text)
        if len(written) > _LONGEST_TEXT:
            raise InvalidQuantity(f"a quantity of {len(written)} characters: {written[:20]!r}…")
        return _parse(written)

    @classmethod
    def from_int(cls, whole: int, written_as: Format = Format.DECIMAL_SI) -> Quantity:
        return cls(whole * NANO, written_as)

    @classmethod
    def from_milli(cls, milli: int) -> Quantity:
        return cls(milli * (NANO // 1000))

    def round_up(self) -> int:
        """The value in whole units, rounded away from zero, like Kubernetes' Value()."""
        return _divide_away_from_zero(self.nano, NANO)

    def to_milli(self) -> int:
        """The value in thousandths, the unit of cpu, rounded away from zero."""
        return _divide_away_from_zero(self.nano, NANO // 1000)

    def as_fraction(self) -> Fraction:
        return Fraction(self.nano, NANO)

    def is_whole(self) -> bool:
        return self.nano % NANO == 0

    def __str__(self) -> str:
        """The canonical form: no fraction, and the largest suffix that is exact."""
        if self.nano == 0:
            return "0"
        if self.format is Format.BINARY_SI and self.is_whole() and abs(self.nano) >= 1024 * NANO:
            return _format_binary(self.nano // NANO)
        return _format_decimal(self.nano, with_exponent=self.format is Format.DECIMAL_EXPONENT)

    def __repr__(self) -> str:
        return f"Quantity({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        return self.nano == other.nano if isinstance(other, Quantity) else NotImplemented

    def __lt__(self, other: object) -> bool:
        return self.nano < other.nano if isinstance(other, Quantity) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.nano)

    def __bool__(self) -> bool:
        return self.nano != 0

    def __add__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano + other.nano, self._format_with(other))

    def __sub__(self, other: Quantity) -> Quantity:
        return Quantity(self.nano - other.nano, self._format_with(other))

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __mul__(self, times: object) -> Quantity:
        return Quantity(self.nano * times, self.format) if isinstance(times, int) else NotImplemented

    __rmul__ = __mul__

    def _format_with(self, other: Quantity) -> Format:
        """A sum has the format of its first operand, unless that is zero."""
        return self.format if self.nano else other.format


# A cluster has few different amounts and reads them often: parsing was a seventh of the cost of creating a pod.
@lru_cache(maxsize=4096)
def _parse(written: str) -> Quantity:
    match = _SHAPE.fullmatch(written)
    if match is None or not written:
        raise InvalidQuantity(f"{written!r}: quantities must match the regular expression '{_GRAMMAR}'")
    sign, whole, fraction, suffix = match.groups(default="")
    if not whole and not fraction:
        raise InvalidQuantity(f"{written!r}: unable to parse numeric part of quantity")
    scale, written_as = _parse_scale(suffix, written)
    amount = Fraction(int(whole + fraction), 10 ** len(fraction)) * scale
    if written_as is Format.BINARY_SI and 0 < amount < 1:
        written_as = Format.DECIMAL_SI
    return Quantity(_round_away_from_zero(amount * NANO) * (-1 if sign == "-" else 1), written_as)


def _parse_scale(suffix: str, written: str) -> tuple[Fraction, Format]:
    if suffix in _DECIMAL:
        return Fraction(10) ** _DECIMAL[suffix], Format.DECIMAL_SI
    if suffix in _BINARY:
        return Fraction(1 << _BINARY[suffix]), Format.BINARY_SI
    exponent = _EXPONENT.fullmatch(suffix)
    if exponent is None:
        raise InvalidQuantity(f"{written!r}: unable to parse quantity's suffix")
    power = int(exponent[1])
    if abs(power) > _LARGEST_EXPONENT:
        raise InvalidQuantity(f"{written!r}: exponent {power} is out of range (at most ±{_LARGEST_EXPONENT})")
    return Fraction(10) ** power, Format.DECIMAL_EXPONENT


def _round_away_from_zero(amount: Fraction) -> int:
    return _divide_away_from_zero(amount.numerator, amount.denominator)


def _divide_away_from_zero(value: int, by: int) -> int:
    return -(-value // by) if value >= 0 else value // by


def _format_binary(whole: int) -> str:
    power = 0
    while whole % 1024 == 0 and power < 60:
        whole //= 1024
        power += 10
    suffix = next((name for name, of in _BINARY.items() if of == power), "")
    return f"{whole}{suffix}"


def _format_decimal(nano: int, *, with_exponent: bool) -> str:
    exponent = -9
    while nano % 1000 == 0 and exponent < 18:
        nano //= 1000
        exponent += 3
    if with_exponent:
        return f"{nano}e{exponent}" if exponent else str(nano)
    return f"{nano}{_DECIMAL_SUFFIX[exponent]}"
