"""The worst-case cost of calls by the sizes of their operands: cel-go's estimates, and Kubernetes' for its libraries.

Numbers and quirks are those of Kubernetes: a change would change which CRDs are accepted. Several functions have a cost
only when called as methods, although they are not methods (`quantity`, `isIP`): they cost one step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from plimsoll.objects.cel.cost.ranges import ONE, PATTERN, TRAVERSAL, UNKNOWN, Range, build_exact
from plimsoll.objects.cel.syntax.ast import AstNode, Literal
from plimsoll.objects.cel.types import types as t
from plimsoll.objects.cel.values.numbers import UINT_MAX

if TYPE_CHECKING:
    from collections.abc import Callable

_LONGEST_FORMAT_NAME = 64
_FORMAT_PATTERN = 128
_ADDRESS = Range(4, 16)


@dataclass(frozen=True, slots=True)
class Operand:
    """An argument or receiver: its type, its size if known, and its declared type if it is reached from a variable."""

    node: AstNode | None
    type: t.CelType
    size: Range
    reached: t.CelType | None


@dataclass(frozen=True, slots=True)
class Price:
    """The cost of a call without its arguments, and the size of its result, if known."""

    cost: Range
    size: Range | None = None


def estimate_library_price(function: str, target: Operand | None, arguments: list[Operand]) -> Price | None:
    """The cost, or None for operators and for calls that cost one step."""
    estimate = _PRICES.get(function)
    return estimate(target, arguments) if estimate is not None else None


def _price_one_step(_target: Operand | None, _arguments: list[Operand]) -> Price:
    return Price(ONE)


def _price_elements(target: Operand | None, _arguments: list[Operand]) -> Price | None:
    """One step per element, more for text elements; for a string, its traversal."""
    if target is None:
        return None
    element = _get_element(target)
    if element is None:
        return Price(target.size.scale(TRAVERSAL))
    per_element = ONE
    if isinstance(element.type, t.StringType | t.BytesType):
        per_element = per_element.add(element.size.scale(TRAVERSAL))
    return Price(target.size.multiply(per_element))


def _get_element(target: Operand) -> Operand | None:
    match target.type:
        case t.ListType():
            of = target.type.element
        case t.MapType():
            of = target.type.key
        case t.OptionalType() | t.TypeType():
            of = target.type.of
        case _:
            return None
    reached = target.reached.element if isinstance(target.reached, t.ListType) else None
    return Operand(None, of, find_declared_size(reached) if reached is not None else UNKNOWN, reached)


def _price_first_argument(_target: Operand | None, arguments: list[Operand]) -> Price | None:
    return Price(arguments[0].size.scale(TRAVERSAL)) if len(arguments) == 1 else None


def _price_same_length(target: Operand | None, _arguments: list[Operand]) -> Price | None:
    return Price(target.size.scale(TRAVERSAL), target.size) if target is not None else None


def _replace(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None or len(arguments) < 2:
        return None
    size, old, new = target.size, arguments[0].size, arguments[1].size
    most_times, most_kept = 0, 0
    if old.least == 0:
        most_times, most_kept = min(size.most + 1, UINT_MAX), size.most
    elif new.most <= old.least:
        most_kept = size.most
    else:
        most_times = -(-size.most // old.least)
    least_times, least_kept = 0, 0
    if old.most == 0:
        least_times, least_kept = size.least + 1, size.least
    elif old.most <= new.least:
        least_kept = size.least
    else:
        least_times = -(-size.least // old.most)
    result = Range(least_times, most_times).multiply(new).add(Range(least_kept, most_kept))
    return Price(size.scale(2 * TRAVERSAL), result)


def _split(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None:
        return None
    most = target.size.most
    if len(arguments) > 1:
        limit = arguments[1].node
        if isinstance(limit, Literal) and isinstance(limit.value, int) and limit.value >= 0:
            most = int(limit.value)
    return Price(target.size.scale(2 * TRAVERSAL), Range(0, most))


def _join(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None:
        return None
    element = _get_element(target)
    size = target.size.multiply(element.size) if element is not None else build_exact(0)
    if arguments:
        gaps = Range(max(target.size.least - 1, 0), max(target.size.most - 1, 0))
        size = size.add(arguments[0].size.multiply(gaps))
    return Price(size.scale(TRAVERSAL), size)


def _find(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None or not arguments:
        return None
    text = target.size.add(ONE).scale(TRAVERSAL)
    return Price(text.multiply(arguments[0].size.scale(PATTERN)), Range(0, target.size.most))


def _price_parsing_method(target: Operand | None, arguments: list[Operand]) -> Price | None:
    return Price(arguments[0].size.scale(TRAVERSAL)) if target is not None and arguments else None


def _price_ip(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None:
        return None
    return Price(arguments[0].size.scale(TRAVERSAL)) if arguments else Price(ONE)


def _contains_address(*, network: bool) -> Callable[[Operand | None, list[Operand]], Price | None]:
    def estimate(target: Operand | None, arguments: list[Operand]) -> Price | None:
        if target is None or not arguments:
            return None
        cost = _ADDRESS.add(_ADDRESS).scale(TRAVERSAL)
        if network:
            cost = cost.add(_ADDRESS.scale(TRAVERSAL)).add(ONE)
        if isinstance(arguments[0].type, t.StringType):
            cost = cost.add(arguments[0].size.scale(TRAVERSAL))
        return Price(cost)

    return estimate


def _validate(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None:
        return None
    return Price(arguments[0].size.scale(TRAVERSAL).scale(_FORMAT_PATTERN * PATTERN))


def _format(target: Operand | None, _arguments: list[Operand]) -> Price | None:
    return Price(target.size.scale(TRAVERSAL)) if target is not None else None


def _price_string_to_bytes(_target: Operand | None, arguments: list[Operand]) -> Price | None:
    if not isinstance(arguments[0].type, t.StringType):
        return None
    size = arguments[0].size
    return Price(size.scale(TRAVERSAL), Range(size.least, min(size.most * 4, UINT_MAX)))


def _price_bytes_to_string(_target: Operand | None, arguments: list[Operand]) -> Price | None:
    if not isinstance(arguments[0].type, t.BytesType):
        return None
    size = arguments[0].size
    return Price(size.scale(TRAVERSAL), Range(size.least // 4, size.most))


def _quote(_target: Operand | None, arguments: list[Operand]) -> Price | None:
    size = arguments[0].size
    return Price(size.scale(TRAVERSAL), Range(size.least + 2, min(size.most * 2 + 2, UINT_MAX)))


def _matches(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None:
        return None
    return Price(target.size.add(ONE).scale(TRAVERSAL).multiply(arguments[0].size.scale(PATTERN)))


def _contains(target: Operand | None, arguments: list[Operand]) -> Price | None:
    if target is None:
        return None
    return Price(target.size.scale(TRAVERSAL).multiply(arguments[0].size.scale(TRAVERSAL)))


def _is_in(_target: Operand | None, arguments: list[Operand]) -> Price | None:
    return None if isinstance(arguments[1].type, t.MapType) else Price(arguments[1].size)


def _equals(_target: Operand | None, arguments: list[Operand]) -> Price | None:
    """Library values have no size: comparing two of them is one step."""
    one, other = arguments
    if one.type != other.type:
        return None
    if one.type in {t.IP, t.CIDR, t.QUANTITY, t.SEMVER, t.URL}:
        return Price(ONE)
    return Price(Range(1, _LONGEST_FORMAT_NAME).scale(TRAVERSAL)) if one.type == t.FORMAT else None


def _build_set_price(factor: int) -> Callable[[Operand | None, list[Operand]], Price | None]:
    def estimate(_target: Operand | None, arguments: list[Operand]) -> Price | None:
        product = arguments[0].size.multiply(arguments[1].size)
        return Price(product.multiply(build_exact(factor)).add(ONE))

    return estimate


_PRICES: dict[str, Callable[[Operand | None, list[Operand]], Price | None]] = {
    **dict.fromkeys(("isSorted", "sum", "max", "min", "indexOf", "lastIndexOf"), _price_elements),
    "url": _price_first_argument,
    **dict.fromkeys(("lowerAscii", "upperAscii", "substring", "trim"), _price_same_length),
    "replace": _replace,
    "split": _split,
    "join": _join,
    **dict.fromkeys(("find", "findAll"), _find),
    **dict.fromkeys(("cidr", "isIP", "isCIDR", "quantity", "isQuantity", "semver", "isSemver"), _price_parsing_method),
    "ip": _price_ip,
    **dict.fromkeys(
        ("masked", "prefixLength", "family", "isUnspecified", "isLoopback", "isLinkLocalMulticast"), _price_one_step
    ),
    **dict.fromkeys(("isLinkLocalUnicast", "format.named", "sign", "asInteger", "isInteger"), _price_one_step),
    **dict.fromkeys(("asApproximateFloat", "isGreaterThan", "isLessThan", "compareTo", "add", "sub"), _price_one_step),
    **dict.fromkeys(("major", "minor", "patch"), _price_one_step),
    **dict.fromkeys(("getScheme", "getHostname", "getHost", "getPort", "getEscapedPath", "getQuery"), _price_one_step),
    "containsIP": _contains_address(network=False),
    "containsCIDR": _contains_address(network=True),
    "validate": _validate,
    "format": _format,
    "bytes": _price_string_to_bytes,
    "string": _price_bytes_to_string,
    "strings.quote": _quote,
    **dict.fromkeys(("startsWith", "endsWith"), _price_first_argument),
    "matches": _matches,
    "contains": _contains,
    "@in": _is_in,
    "_==_": _equals,
    "sets.contains": _build_set_price(1),
    "sets.intersects": _build_set_price(1),
    "sets.equivalent": _build_set_price(2),
}

# A request is at most 3 MiB, and two characters of it are the quotes around the text.
_LARGEST_VALUE = 3 * 1024 * 1024 - 2
_LONGEST_TIME = 32


def find_declared_size(of: t.CelType) -> Range:
    """The size of a value of this type by its schema; values without a size count as empty."""
    match of:
        case t.StringType() | t.BytesType():
            most = of.max_length
        case t.ListType():
            most = of.max_items
        case t.MapType():
            most = of.max_properties
        case t.OptionalType():
            return find_declared_size(of.of)
        case t.SimpleType() if of == t.DYN:
            most = _LARGEST_VALUE
        case t.SimpleType() if of in {t.TIMESTAMP, t.DURATION}:
            most = _LONGEST_TIME
        case _:
            most = 0
    return UNKNOWN if most is None else Range(0, min(most, UINT_MAX))
