"""Decodes an object of a built-in kind like Go's JSON decoder, with Go's error messages.

A server answers 400 with the first of these messages and does not validate. Users want all of them, each with the path
of its field, so all are returned, in document order. The decoded value has no nulls, no unknown fields, and canonical
quantities; validation and defaulting may rely on its types. `readers` compiles the decoding.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.builtin.decoding.go_scalars import get_json_kind
from plimsoll.objects.builtin.decoding.readers import build_struct_reader, format_go_path, format_path

if TYPE_CHECKING:
    from plimsoll.objects.builtin.decoding.readers import Place

# Go's strict decoder stops collecting there; more would only be noise.
MOST_PROBLEMS: Final = 100


class DecodeProblem(Value):
    """A field that cannot be decoded, with Go's message. `ends_decoding`: Go stops there and reports only this."""

    path: str
    text: str
    ends_decoding: bool = False


class Decoded(Value):
    """The object as Go holds it, and what was wrong with it."""

    value: dict[str, Any]
    problems: list[DecodeProblem] = []
    unknown_fields: list[str] = []


def decode(value: dict[str, Any], component: str) -> Decoded:
    """Decode `value` (taken over, see `schema.json_values`) by the schema `component`.

    The caller may change the result, except for values that Go stores as bytes: they are shared with `value`.
    """
    notes = _Notes()
    decoded = build_struct_reader(component).read(value, None, notes)
    return Decoded(value=decoded, problems=notes.problems, unknown_fields=list(notes.unknown))


def choose_go_error(problems: list[DecodeProblem]) -> str | None:
    """The one sentence Go returns: what ended its decoding, else the first thing it noted."""
    for problem in problems:
        if problem.ends_decoding:
            return problem.text
    return problems[0].text if problems else None


class _Notes:
    """The problems that the readers found, in document order."""

    def __init__(self) -> None:
        self.problems: list[DecodeProblem] = []
        self.unknown: dict[str, None] = {}

    def add_type_error(self, value: Any, place: Place | None, go_type: str) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            field = format_go_path(place)
            where = f"Go struct field {field}" if field else "Go value"
            text = f"json: cannot unmarshal {get_json_kind(value, go_type)} into {where} of type {go_type}"
            self.problems.append(DecodeProblem(path=format_path(place), text=text))

    def add_problem(self, place: Place | None, text: str, *, ends_decoding: bool = False) -> None:
        if len(self.problems) < MOST_PROBLEMS:
            self.problems.append(DecodeProblem(path=format_path(place), text=text, ends_decoding=ends_decoding))

    def add_unknown_field(self, place: Place) -> None:
        if len(self.unknown) < MOST_PROBLEMS:
            self.unknown[format_path(place)] = None
