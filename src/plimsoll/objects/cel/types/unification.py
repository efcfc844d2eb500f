"""Assignability of types, which binds type variables.

The rules are cel-go's: `dyn` is assignable to everything, null to objects, timestamps, durations and opaque types,
lists and maps by their element types. There is one `Bindings` per expression.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.objects.cel.types import types as t

if TYPE_CHECKING:
    from collections.abc import Sequence

_NULLABLE = frozenset({t.NULL, t.TIMESTAMP, t.DURATION, t.QUANTITY, t.URL, t.IP, t.CIDR, t.SEMVER, t.FORMAT})


def is_dynamic(of: t.CelType) -> bool:
    return of in (t.DYN, t.ERROR)


class Bindings:
    """The bindings of type variables; `create_type_variable` variables come from signatures and empty literals."""

    def __init__(self) -> None:
        self._bound: dict[t.TypeVariable, t.CelType] = {}
        self._made = 0

    def create_type_variable(self) -> t.TypeVariable:
        self._made += 1
        return t.TypeVariable(f"_var{self._made}")

    def resolve(self, of: t.CelType, *, free_as_dyn: bool = False) -> t.CelType:
        """The type with all bound variables replaced. Free variables become dyn on request."""
        of = self._resolve_target(of)
        match of:
            case t.TypeVariable():
                return t.DYN if free_as_dyn else of
            case t.ListType():
                element = self.resolve(of.element, free_as_dyn=free_as_dyn)
                return t.ListType(element, of.max_items, of.kind, of.map_keys)
            case t.MapType():
                key = self.resolve(of.key, free_as_dyn=free_as_dyn)
                return t.MapType(key, self.resolve(of.value, free_as_dyn=free_as_dyn), of.max_properties)
            case t.OptionalType():
                return t.OptionalType(self.resolve(of.of, free_as_dyn=free_as_dyn))
            case t.TypeType():
                return t.TypeType(self.resolve(of.of, free_as_dyn=free_as_dyn))
        return of

    def try_assign(self, wanted: Sequence[t.CelType], given: Sequence[t.CelType]) -> bool:
        """Whether all of `given` are assignable; bindings are stored only if they are."""
        before = dict(self._bound)
        if len(wanted) == len(given) and all(map(self._fits, wanted, given)):
            return True
        self._bound = before
        return False

    def _resolve_target(self, of: t.CelType) -> t.CelType:
        while isinstance(of, t.TypeVariable) and of in self._bound:
            of = self._bound[of]
        return of

    def _fits(self, wanted: t.CelType, given: t.CelType) -> bool:
        wanted, given = self._resolve_target(wanted), self._resolve_target(given)
        if wanted == given or is_dynamic(wanted) or is_dynamic(given):
            return self._widen(wanted, given)
        if isinstance(wanted, t.TypeVariable):
            return self._bind(wanted, given)
        if isinstance(given, t.TypeVariable):
            return self._bind(given, wanted)
        match wanted, given:
            case (t.ListType(), t.ListType()):
                return self._fits(wanted.element, given.element)
            case (t.MapType(), t.MapType()):
                return self._fits(wanted.key, given.key) and self._fits(wanted.value, given.value)
            case (t.OptionalType(), t.OptionalType()):
                return self._fits(wanted.of, given.of)
            case (t.TypeType(), t.TypeType()):
                return True
        return self._accepts_null(wanted, given)

    def _accepts_null(self, wanted: t.CelType, given: t.CelType) -> bool:
        other = wanted if given == t.NULL else given
        return t.NULL in (wanted, given) and (other in _NULLABLE or isinstance(other, t.ObjectType | t.OptionalType))

    def _widen(self, wanted: t.CelType, given: t.CelType) -> bool:
        """A free variable that meets dyn is dyn from then on."""
        for cel_type, other in ((wanted, given), (given, wanted)):
            if isinstance(cel_type, t.TypeVariable) and is_dynamic(other):
                return self._bind(cel_type, t.DYN)
        return True

    def _bind(self, variable: t.TypeVariable, to: t.CelType) -> bool:
        if self._occurs(variable, to):
            return False
        self._bound[variable] = to
        return True

    def _occurs(self, variable: t.TypeVariable, within: t.CelType) -> bool:
        within = self._resolve_target(within)
        match within:
            case t.TypeVariable():
                return within == variable
            case t.ListType():
                return self._occurs(variable, within.element)
            case t.MapType():
                return self._occurs(variable, within.key) or self._occurs(variable, within.value)
            case t.OptionalType() | t.TypeType():
                return self._occurs(variable, within.of)
        return False


def choose_more_general(left: t.CelType, right: t.CelType) -> t.CelType:
    """The more general of two compatible types."""
    return left if is_dynamic(left) or isinstance(left, t.TypeVariable) or not is_dynamic(right) else right
