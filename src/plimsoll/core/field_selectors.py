"""Field selectors: `metadata.name=x,status.phase!=Running`, as in list and watch requests.

The API server decides which fields a kind supports. Here are the text form with its escapes (a backslash before a
comma, an equals sign or a backslash) and matching against a map of field texts, where an absent field is the empty
text. Error messages are those of Kubernetes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_SPECIAL: Final = frozenset("\\,=")
_SIGNS: Final = ("!=", "==", "=")


class FieldTerm(Value, frozen=True):
    """One comparison. `==` and `=` are the same."""

    field: str
    value: str
    equal: bool = True

    def __str__(self) -> str:
        return f"{self.field}{'=' if self.equal else '!='}{escape_field_value(self.value)}"


class FieldSelector(Value, frozen=True):
    """A conjunction of comparisons; without any it matches everything."""

    terms: tuple[FieldTerm, ...] = ()

    def matches(self, fields: Mapping[str, str]) -> bool:
        return all((fields.get(term.field, "") == term.value) is term.equal for term in self.terms)

    @property
    def fields(self) -> tuple[str, ...]:
        """The selected fields, each once, in order. The API server compares them with those that a kind supports."""
        return tuple(dict.fromkeys(term.field for term in self.terms))

    def get_exact_value(self, field: str) -> str | None:
        """The one value the selector leaves for `field`, if it names one."""
        return next((term.value for term in self.terms if term.field == field and term.equal), None)

    def __str__(self) -> str:
        return ",".join(map(str, self.terms))


def parse_field_selector(text: str) -> FieldSelector:
    """The selector that `text` spells; empty parts between commas do not count."""
    return FieldSelector(terms=tuple(_parse_term(part, text) for part in sorted(_split(text)) if part))


def escape_field_value(value: str) -> str:
    return "".join(f"\\{character}" if character in _SPECIAL else character for character in value)


def _split(text: str) -> Iterator[str]:
    """Split at commas without a preceding backslash."""
    start = 0
    escaped = False
    for index, character in enumerate(text):
        if escaped:
            escaped = False
        elif character == "\\":
            escaped = True
        elif character == ",":
            yield text[start:index]
            start = index + 1
    yield text[start:]


def _parse_term(part: str, whole: str) -> FieldTerm:
    for index, character in enumerate(part):
        if character not in "!=":
            continue
        for sign in _SIGNS:
            if part.startswith(sign, index):
                value = _unescape(part[index + len(sign) :])
                return FieldTerm(field=part[:index], value=value, equal=sign != "!=")
    raise InvalidSelector(f"invalid selector: '{whole}'; can't understand '{part}'")


def _unescape(value: str) -> str:
    if not _SPECIAL.intersection(value):
        return value
    characters: list[str] = []
    escaped = False
    for character in value:
        if escaped:
            if character not in _SPECIAL:
                raise InvalidSelector(f"invalid field selector: invalid escape sequence: \\{character}")
            characters.append(character)
            escaped = False
        elif character == "\\":
            escaped = True
        elif character in _SPECIAL:
            raise InvalidSelector(f"invalid field selector: unescaped character in value: {character}")
        else:
            characters.append(character)
    if escaped:
        raise InvalidSelector("invalid field selector: invalid escape sequence: \\")
    return "".join(characters)
