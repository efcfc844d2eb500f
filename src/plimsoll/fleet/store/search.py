"""A search expression, an order and a page as SQL, with the same answers on both databases.

`like` respects case, `ilike` ignores that of ASCII. `%` and `_` are wildcards, a backslash takes their meaning away.
Text is ordered by code point, and what is empty comes last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from sqlalchemy import and_, or_

from plimsoll.core.errors import InvalidInput
from plimsoll.fleet.model.search import COLUMNS, Comparison, Conjunction, Operator
from plimsoll.fleet.store.schema import KAFKA_SECRETS, KAFKAS

if TYPE_CHECKING:
    from sqlalchemy import ColumnElement, Select

    from plimsoll.fleet.model.search import Search
    from plimsoll.fleet.ports import Page

_ESCAPE: Final = "\\"
_MOST_VALUES: Final = 1000
_LONGEST_PATTERN: Final = 10_000
"""Both are below the limits of the two databases, which differ."""
_LARGEST: Final = 2**63 - 1


def compile_search(search: Search) -> ColumnElement[bool]:
    if isinstance(search, Comparison):
        return _compile_comparison(search)
    parts = [compile_search(part) for part in search.parts]
    return and_(*parts) if isinstance(search, Conjunction) else or_(*parts)


def _compile_comparison(comparison: Comparison) -> ColumnElement[bool]:
    if comparison.column not in COLUMNS:
        raise InvalidInput(f"is not a column to search; these are: {', '.join(COLUMNS)}", path=comparison.column)
    if not 1 <= len(comparison.values) <= _MOST_VALUES:
        raise InvalidInput(f"is compared with {len(comparison.values)} values", path=comparison.column)
    column: ColumnElement[Any] = KAFKAS.c[comparison.column]
    first = comparison.values[0]
    match comparison.operator:
        case Operator.EQUAL:
            return column == first
        case Operator.NOT_EQUAL:
            return column != first
        case Operator.IN:
            return column.in_(comparison.values)
        case Operator.NOT_IN:
            return column.not_in(comparison.values)
    pattern = _complete_pattern(first, comparison.column)
    match comparison.operator:
        case Operator.LIKE:
            return column.like(pattern, escape=_ESCAPE)
        case Operator.NOT_LIKE:
            return column.not_like(pattern, escape=_ESCAPE)
        case Operator.ILIKE:
            return column.ilike(pattern, escape=_ESCAPE)
        case Operator.NOT_ILIKE:
            return column.not_ilike(pattern, escape=_ESCAPE)


def _complete_pattern(pattern: str, column: str) -> str:
    """PostgreSQL refuses a pattern that ends with a single escape character; it stands for itself."""
    if len(pattern) > _LONGEST_PATTERN:
        raise InvalidInput(f"the pattern is longer than {_LONGEST_PATTERN} characters", path=column)
    trailing = len(pattern) - len(pattern.rstrip(_ESCAPE))
    return pattern + _ESCAPE if trailing % 2 else pattern


def apply_page(statement: Select[Any], page: Page) -> Select[Any] | None:
    """The statement with order, limit and offset. None: a page behind the end of all tables."""
    offset = (page.number - 1) * page.size
    if page.number < 1 or page.size < 1:
        raise InvalidInput("must be at least 1", path="page" if page.number < 1 else "size")
    if offset > _LARGEST:
        return None
    order: list[ColumnElement[Any]] = []
    for name, ascends in page.order_by:
        if name not in KAFKAS.c or name in KAFKA_SECRETS:
            raise InvalidInput(f"{name[:100]!r} is not a column to order by", path="orderBy")
        column = KAFKAS.c[name]
        order.append((column.asc() if ascends else column.desc()).nulls_last())
    return statement.order_by(*order, KAFKAS.c.id).limit(min(page.size, _LARGEST)).offset(offset)
