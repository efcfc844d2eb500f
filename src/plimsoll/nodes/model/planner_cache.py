"""What planners keep from one loop iteration to the next, so that an iteration costs by what changed: `PlannerCache`.

Every value in it is either looked up by content or compared with the objects it was made from before it is used again:
with a cache, without one, or with the cache of another cluster, a plan comes out the same. A snapshot may carry one.
Only one planner at a time may use it. The cache does not know what it holds; each module of the planner asks for its
own type of value.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from collections.abc import Callable

T = TypeVar("T")


class PlannerCache:
    """One value per factory and purpose."""

    def __init__(self) -> None:
        self._values: dict[tuple[object, str], Any] = {}

    def get(self, make: Callable[[], T], purpose: str = "") -> T:
        """The value that `make` produced when it was first asked for."""
        key = (make, purpose)
        if key not in self._values:
            self._values[key] = make()
        value: T = self._values[key]
        return value

    def drop(self, make: Callable[[], object], purpose: str = "") -> None:
        """Forget a value; `get` makes it again."""
        self._values.pop((make, purpose), None)
