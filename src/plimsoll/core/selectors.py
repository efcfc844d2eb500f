"""Label selectors.

Two spellings have one value, `LabelSelector`: the structured one (matchLabels and matchExpressions), built with
`build_requirement()` and `LabelSelector.from_parts()`, and the text one (`app=web,tier in (a,b),!canary`), parsed by
`label_selector_parsing`.

Requirements are compiled to one rule per key when a selector is built, so matching costs as much as there are labels,
whether a selector holds one requirement or ten thousand. Nothing here knows wire structs; `objects` and `scheduling`
convert theirs.
"""

from __future__ import annotations

import json
from enum import StrEnum
from functools import lru_cache
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.names import find_label_value_problems, find_qualified_name_problems
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Mapping

_INT64: Final = range(-(2**63), 2**63)


class Operator(StrEnum):
    """The operator of a requirement; the values are Kubernetes' names in error messages."""

    IN = "in"
    NOT_IN = "notin"
    EQUALS = "="
    DOUBLE_EQUALS = "=="
    NOT_EQUALS = "!="
    GREATER_THAN = "gt"
    LESS_THAN = "lt"
    EXISTS = "exists"
    DOES_NOT_EXIST = "!"


BINARY_OPERATORS: Final = tuple(Operator)[:7]

_STRUCTURED_OPERATORS: Final = {
    "In": Operator.IN,
    "NotIn": Operator.NOT_IN,
    "Exists": Operator.EXISTS,
    "DoesNotExist": Operator.DOES_NOT_EXIST,
}
_ONE_OF: Final = frozenset({Operator.IN, Operator.EQUALS, Operator.DOUBLE_EQUALS})
_NONE_OF: Final = frozenset({Operator.NOT_IN, Operator.NOT_EQUALS})
_ORDERED: Final = frozenset({Operator.GREATER_THAN, Operator.LESS_THAN})
_UNARY: Final = frozenset({Operator.EXISTS, Operator.DOES_NOT_EXIST})


class Requirement(Value, frozen=True):
    """A condition on one key. `build_requirement()` builds and checks it, so every `Requirement` is valid."""

    key: str
    operator: Operator
    values: frozenset[str] = frozenset()

    def matches(self, labels: Mapping[str, str]) -> bool:
        return LabelSelector((self,)).matches(labels)

    def __str__(self) -> str:
        if self.operator is Operator.EXISTS:
            return self.key
        if self.operator is Operator.DOES_NOT_EXIST:
            return f"!{self.key}"
        values = ",".join(sorted(self.values))
        if self.operator in {Operator.IN, Operator.NOT_IN}:
            return f"{self.key} {self.operator.value} ({values})"
        sign = {Operator.GREATER_THAN: ">", Operator.LESS_THAN: "<"}.get(self.operator, self.operator.value)
        return f"{self.key}{sign}{values}"


def build_requirement(key: str, operator: Operator, values: Iterable[str] = (), *, path: str = "") -> Requirement:
    """A checked requirement; `InvalidSelector` lists every problem, with `path` before each field's name."""
    listed = tuple(values)
    problems = [*_find_key_problems(key, path), *_find_operand_problems(operator, listed, path)]
    for index, value in enumerate(listed):
        if complaints := find_label_value_problems(value):
            where = _join_path(path, f"values[{index}][{key}]")
            problems.append(f"{where}: Invalid value: {_quote(value)}: {'; '.join(complaints)}")
    if problems:
        raise InvalidSelector(aggregate(problems))
    return Requirement(key=key, operator=operator, values=frozenset(listed))


def parse_requirement(key: str, operator: str, values: Collection[str] = (), *, path: str = "") -> Requirement:
    """A matchExpressions entry, whose operators are In, NotIn, Exists and DoesNotExist."""
    known = _STRUCTURED_OPERATORS.get(operator)
    if known is None:
        raise InvalidSelector(f"{_quote(operator)} is not a valid label selector operator", path=path)
    return build_requirement(key, known, values, path=path)


class LabelSelector:
    """A conjunction of requirements. Empty matches everything; `NOTHING` matches nothing (an absent selector).

    Whether an absent selector means everything or nothing is the caller's to say, because Kubernetes' fields differ.
    """

    __slots__ = ("_impossible", "_present", "_rules", "requirements")

    requirements: tuple[Requirement, ...]

    def __init__(self, requirements: Iterable[Requirement] = (), *, impossible: bool = False) -> None:
        self.requirements = tuple(sorted(requirements, key=lambda requirement: requirement.key))
        self._rules: dict[str, _KeyRule] = {}
        for wanted in self.requirements:
            self._rules.setdefault(wanted.key, _KeyRule()).narrow(wanted)
        self._present = frozenset(key for key, rule in self._rules.items() if rule.present)
        self._impossible = impossible

    @classmethod
    def from_parts(cls, match_labels: Mapping[str, str], expressions: Iterable[Requirement] = ()) -> LabelSelector:
        """The structured form: every pair of matchLabels as an `=`, and the expressions (already checked)."""
        others = tuple(expressions)
        if not others:
            return _build_label_selector(tuple(match_labels.items()))
        return cls((*_build_label_requirements(match_labels.items()), *others))

    @property
    def is_empty(self) -> bool:
        """True when it does not restrict anything."""
        return not self.requirements and not self._impossible

    @property
    def selects_nothing(self) -> bool:
        return self._impossible

    def matches(self, labels: Mapping[str, str]) -> bool:
        if self._impossible or len(self._present) > len(labels):
            return False
        if not self._rules:
            return True
        if not all(key in labels for key in self._present):
            return False
        rules = self._rules
        if len(rules) < len(labels):
            return all(rule.allows(labels[key]) for key, rule in rules.items() if key in labels)
        return all(rules[key].allows(value) for key, value in labels.items() if key in rules)

    def with_requirements(self, *more: Requirement) -> LabelSelector:
        """A copy with further requirements; a selector of nothing stays one."""
        return self if self._impossible else LabelSelector((*self.requirements, *more))

    def get_exact_value(self, key: str) -> str | None:
        """The value that `key` must have, if the selector allows only one; usable for an index lookup."""
        rule = self._rules.get(key)
        if rule is None or rule.allowed is None or len(rule.allowed) != 1:
            return None
        (value,) = rule.allowed
        return value

    def __iter__(self) -> Iterator[Requirement]:
        return iter(self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))

    def __repr__(self) -> str:
        return "LabelSelector.NOTHING" if self._impossible else f"LabelSelector({str(self)!r})"

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, LabelSelector):
            return NotImplemented
        return self._impossible == other._impossible and self.requirements == other.requirements

    def __hash__(self) -> int:
        return hash((self.requirements, self._impossible))


class _KeyRule:
    """All requirements of a selector on one key, merged."""

    __slots__ = ("above", "absent", "allowed", "below", "forbidden", "present")

    def __init__(self) -> None:
        self.present = False
        self.absent = False
        self.allowed: frozenset[str] | None = None
        self.forbidden: set[str] = set()
        self.above: int | None = None
        self.below: int | None = None

    def narrow(self, requirement: Requirement) -> None:
        if requirement.operator is Operator.DOES_NOT_EXIST:
            self.absent = True
        elif requirement.operator in _NONE_OF:
            self.forbidden |= requirement.values
        else:
            self.present = True
        if requirement.operator in _ONE_OF:
            self.allowed = requirement.values if self.allowed is None else self.allowed & requirement.values
        elif requirement.operator in _ORDERED:
            (bound,) = requirement.values
            if requirement.operator is Operator.GREATER_THAN:
                self.above = int(bound) if self.above is None else max(self.above, int(bound))
            else:
                self.below = int(bound) if self.below is None else min(self.below, int(bound))

    def allows(self, value: str) -> bool:
        """Whether a label that is there may have this value."""
        if self.absent or value in self.forbidden:
            return False
        if self.allowed is not None and value not in self.allowed:
            return False
        if self.above is None and self.below is None:
            return True
        number = parse_decimal_int64(value)
        if number is None:
            return False
        return (self.above is None or number > self.above) and (self.below is None or number < self.below)


EVERYTHING: Final = LabelSelector()


def _build_label_requirements(match_labels: Iterable[tuple[str, str]]) -> Iterator[Requirement]:
    return (build_requirement(key, Operator.EQUALS, (value,)) for key, value in match_labels)


@lru_cache(maxsize=1024)
def _build_label_selector(match_labels: tuple[tuple[str, str], ...]) -> LabelSelector:
    """Controllers need the selector of an owner in every reconcile; its labels seldom change."""
    return LabelSelector(_build_label_requirements(match_labels))


NOTHING: Final = LabelSelector(impossible=True)


def parse_decimal_int64(text: str) -> int | None:
    """The integer Kubernetes' Gt and Lt see in a label: decimal digits with at most a sign, in 64 bits; else none."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()) or len(digits) > 64:
        return None
    number = int(text)
    return number if number in _INT64 else None


def aggregate(problems: list[str]) -> str:
    """Several complaints as Kubernetes joins them: each once, in brackets when there are more than one."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def find_key_problem(key: str, *, path: str) -> str | None:
    """The complaint about a key as Kubernetes writes it, or none."""
    complaints = find_qualified_name_problems(key)
    return f"{path}: Invalid value: {_quote(key)}: {'; '.join(complaints)}" if complaints else None


def _find_key_problems(key: str, path: str) -> list[str]:
    problem = find_key_problem(key, path=_join_path(path, "key"))
    return [] if problem is None else [problem]


def _find_operand_problems(operator: Operator, values: tuple[str, ...], path: str) -> list[str]:
    where = _join_path(path, "values")
    listed = json.dumps(list(values), ensure_ascii=False)
    if operator in {Operator.IN, Operator.NOT_IN}:
        return (
            []
            if values
            else [f"{where}: Invalid value: {listed}: for 'in', 'notin' operators, values set can't be empty"]
        )
    if operator in _UNARY:
        unwanted = "values set must be empty for exists and does not exist"
        return [f"{where}: Invalid value: {listed}: {unwanted}"] if values else []
    if operator not in _ORDERED:
        single = "exact-match compatibility requires one single value"
        return [] if len(values) == 1 else [f"{where}: Invalid value: {listed}: {single}"]
    problems: list[str] = []
    if len(values) != 1:
        problems.append(f"{where}: Invalid value: {listed}: for 'Gt', 'Lt' operators, exactly one value is required")
    integer = "for 'Gt', 'Lt' operators, the value must be an integer"
    problems += [
        f"{where}[{index}]: Invalid value: {_quote(value)}: {integer}"
        for index, value in enumerate(values)
        if parse_decimal_int64(value) is None
    ]
    return problems


def _join_path(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _quote(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
