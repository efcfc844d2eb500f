"""Pages of lists: the parameters `page`, `size` and `orderBy`, and the document of a list."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final, TypeVar

from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.model.search import ORDER_COLUMNS
from plimsoll.fleet.ports import Page

if TYPE_CHECKING:
    from collections.abc import Sequence

DEFAULT_SIZE: Final = 100
LARGEST_SIZE: Final = 65_500
LARGEST_NUMBER: Final = 2**63 - 1
_NUMBER: Final = re.compile(r"[+-]?[0-9]{1,100}", re.ASCII)
Item = TypeVar("Item")
_DIRECTIONS: Final = {"asc": True, "desc": False}


def parse_page(page: str, size: str, order_by: str = "") -> Page:
    """The page that a caller wants. Raises `RequestRefused`."""
    number = _parse_number("page", page, default=1)
    count = min(_parse_number("size", size, default=DEFAULT_SIZE), LARGEST_SIZE)
    if (number - 1) * count > LARGEST_NUMBER:
        raise RequestRefused(Code.VALIDATION, f"page {number} of size {count} is beyond 64 bits")
    order = _parse_order(order_by)
    return Page(number=number, size=count, order_by=order) if order else Page(number=number, size=count)


def _parse_number(name: str, text: str, *, default: int) -> int:
    if not text:
        return default
    if not _NUMBER.fullmatch(text):
        raise RequestRefused(Code.VALIDATION, f"{name} must be a number, is {text[:50]!r}")
    number = int(text)
    if not 1 <= number <= LARGEST_NUMBER:
        raise RequestRefused(Code.VALIDATION, f"{name} must be between 1 and {LARGEST_NUMBER}")
    return number


def _parse_order(text: str) -> tuple[tuple[str, bool], ...]:
    order: dict[str, bool] = {}
    for part in text.split(",") if text.strip() else ():
        column, *rest = part.split() or [""]
        direction = rest[0].lower() if len(rest) == 1 else "asc"
        if column not in ORDER_COLUMNS or len(rest) > 1 or direction not in _DIRECTIONS:
            raise RequestRefused(
                Code.BAD_REQUEST,
                f"orderBy must be columns with asc or desc, separated by commas, and {part.strip()[:50]!r} is not one; "
                f"columns are {', '.join(ORDER_COLUMNS)}",
            )
        order.setdefault(column, _DIRECTIONS[direction])
    return tuple(order.items())


def cut_page(items: Sequence[Item], page: Page) -> list[Item]:
    """The page of a list that is at hand as a whole."""
    start = (page.number - 1) * page.size
    return list(items[start : start + page.size])
