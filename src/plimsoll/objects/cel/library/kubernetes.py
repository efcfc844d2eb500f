"""Kubernetes' libraries of its own notions: `quantity`, `semver`, and named string formats."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import total_ordering
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.library.string_formats import FORMATS
from plimsoll.objects.cel.types.signatures import Library
from plimsoll.objects.cel.values.numbers import INT_MAX, INT_MIN, UINT_MAX
from plimsoll.objects.cel.values.optionals import CelOptional
from plimsoll.objects.cel.values.values import Opaque

if TYPE_CHECKING:
    from collections.abc import Callable

LIBRARY = Library()


@dataclass(frozen=True, slots=True)
class QuantityValue(Opaque):
    """A quantity among CEL's values."""

    amount: Quantity
    type_name = "kubernetes.Quantity"


def _parse_quantity(text: str) -> Quantity | None:
    # Quantity.parse forgives blanks around the text, which Kubernetes does not.
    if text != text.strip():
        return None
    try:
        return Quantity.parse(text)
    except InvalidQuantity:
        return None


@LIBRARY.function("quantity(string) -> quantity")
def to_quantity(text: str) -> QuantityValue:
    amount = _parse_quantity(text)
    if amount is None:
        raise CelEvaluationError(
            "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'"
        )
    return QuantityValue(amount)


@LIBRARY.function("isQuantity(string) -> bool")
def is_quantity(text: str) -> bool:
    return _parse_quantity(text) is not None


@LIBRARY.function("sign(quantity) -> int", "<quantity>.sign() -> int")
def sign(value: QuantityValue) -> int:
    amount = value.amount.as_fraction()
    return (amount > 0) - (amount < 0)


@LIBRARY.function("<quantity>.isInteger() -> bool")
def is_integer(value: QuantityValue) -> bool:
    amount = value.amount.as_fraction()
    return amount.denominator == 1 and INT_MIN <= amount <= INT_MAX


@LIBRARY.function("<quantity>.asInteger() -> int")
def as_integer(value: QuantityValue) -> int:
    if not is_integer(value):
        raise CelEvaluationError("cannot convert value to integer")
    return int(value.amount.as_fraction())


@LIBRARY.function("<quantity>.asApproximateFloat() -> double")
def as_approximate_float(value: QuantityValue) -> float:
    return float(value.amount.as_fraction())


@LIBRARY.function("<quantity>.add(quantity) -> quantity", "<quantity>.add(int) -> quantity")
def plus(value: QuantityValue, other: QuantityValue | int) -> QuantityValue:
    return QuantityValue(value.amount + _as_quantity(other))


@LIBRARY.function("<quantity>.sub(quantity) -> quantity", "<quantity>.sub(int) -> quantity")
def minus(value: QuantityValue, other: QuantityValue | int) -> QuantityValue:
    return QuantityValue(value.amount - _as_quantity(other))


def _as_quantity(value: QuantityValue | int) -> Quantity:
    return value.amount if isinstance(value, QuantityValue) else Quantity.parse(str(value))


@total_ordering
@dataclass(frozen=True, slots=True, eq=False)
class Semver(Opaque):
    """A semantic version; build data does not take part in comparisons."""

    numbers: tuple[int, int, int]
    prerelease: tuple[str, ...]
    type_name = "kubernetes.Semver"

    def _rank(self) -> tuple[object, ...]:
        """Versions compare as these tuples: a release is above its prereleases, numbers are below words."""
        words = tuple((0, int(part), "") if part.isdigit() else (1, 0, part) for part in self.prerelease)
        return (self.numbers, not self.prerelease, words)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Semver) and self._rank() == other._rank()

    def __lt__(self, other: Semver) -> bool:
        return self._rank() < other._rank()

    def __hash__(self) -> int:
        return hash(self._rank())


_SEMVER = re.compile(
    r"(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)\.(0|[1-9][0-9]*)(?:-([0-9A-Za-z.-]+))?(?:\+([0-9A-Za-z.-]+))?", re.ASCII
)
_LONGEST_VERSION = 1024


def _parse_semver(text: str) -> Semver | str:
    """The version, or why it is none."""
    if not text:
        return "Version string empty"
    if text.count(".") < 2:
        return "No Major.Minor.Patch elements found"
    found = _SEMVER.fullmatch(text) if len(text) <= _LONGEST_VERSION else None
    if found is None:
        return f"Invalid character(s) found in version {text[:64]!r}"
    major, minor, patch, prerelease, build = found.groups()
    numbers = (_parse_number(major), _parse_number(minor), _parse_number(patch))
    identifiers = tuple(prerelease.split(".")) if prerelease is not None else ()
    if any(part.isdigit() and len(part) > 1 and part.startswith("0") for part in identifiers):
        return "Numeric PreRelease version must not contain leading zeroes"
    if "" in identifiers or (build is not None and "" in build.split(".")):
        return "Prerelease is empty"
    if max(numbers) > UINT_MAX:
        return "value out of range"
    return Semver(numbers, identifiers)


def _parse_number(digits: str) -> int:
    return int(digits) if len(digits) <= 20 else UINT_MAX + 1


def _normalize(text: str) -> str:
    """The version without a leading v or leading zeros, and with all three numbers."""
    parts = text.removeprefix("v").split(".", 2)
    for place, part in enumerate(parts):
        stripped = part.lstrip("0")
        if len(part) > 1:
            parts[place] = stripped if stripped[:1].isdigit() else "0" + stripped
    if len(parts) < 3 and not any(mark in parts[-1] for mark in "+-"):
        parts += ["0"] * (3 - len(parts))
    return ".".join(parts)


@LIBRARY.function("semver(string) -> semver", "semver(string, bool) -> semver")
def to_semver(text: str, normalize: bool = False) -> Semver:
    version = _parse_semver(_normalize(text) if normalize else text)
    if isinstance(version, str):
        raise CelEvaluationError(version)
    return version


@LIBRARY.function("isSemver(string) -> bool", "isSemver(string, bool) -> bool")
def is_semver(text: str, normalize: bool = False) -> bool:
    return isinstance(_parse_semver(_normalize(text) if normalize else text), Semver)


def _declare_number(name: str, place: int) -> None:
    @LIBRARY.function(f"<semver>.{name}() -> int")
    def number(version: Semver) -> int:
        return version.numbers[place]


_declare_number("major", 0)
_declare_number("minor", 1)
_declare_number("patch", 2)


def _as_comparable(value: object) -> Quantity | Semver:
    if isinstance(value, QuantityValue):
        return value.amount
    assert isinstance(value, Semver)
    return value


def _declare_comparison(name: str, result: str, compare: Callable[[bool, bool], object]) -> None:
    @LIBRARY.function(f"<quantity>.{name}(quantity) -> {result}", f"<semver>.{name}(semver) -> {result}")
    def comparison(left: object, right: object) -> object:
        one, other = _as_comparable(left), _as_comparable(right)
        if type(one) is not type(other):
            raise CelEvaluationError("no such overload")
        return compare(one > other, one < other)


_declare_comparison("isGreaterThan", "bool", lambda above, _: above)
_declare_comparison("isLessThan", "bool", lambda _, below: below)
_declare_comparison("compareTo", "int", lambda above, below: above - below)


@dataclass(frozen=True, slots=True)
class Format(Opaque):
    """A named string format."""

    name: str
    type_name = "kubernetes.NamedFormat"


@LIBRARY.function("format.named(string) -> optional(format)")
def find_format(name: str) -> CelOptional:
    return CelOptional.of(Format(name)) if name in FORMATS else CelOptional.none()


def _declare_format(name: str) -> None:
    @LIBRARY.function(f"format.{name}() -> format")
    def constant() -> Format:
        return Format(name)


for _name in FORMATS:
    _declare_format(_name)


@LIBRARY.function("<format>.validate(string) -> optional(list(string))")
def validate(of: Format, text: str) -> CelOptional:
    problems = FORMATS[of.name](text)
    return CelOptional.of(problems) if problems else CelOptional.none()
