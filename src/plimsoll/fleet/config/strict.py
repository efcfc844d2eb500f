"""The base of configuration documents: strict pydantic models, values with bounds, and mistakes with their paths."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Annotated, Any, Final, NamedTuple, TypeVar

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from plimsoll.core.errors import InvalidQuantity
from plimsoll.core.quantity import Quantity
from plimsoll.core.value_parsing import InvalidValue, parse_duration_s

if TYPE_CHECKING:
    from collections.abc import Callable, Hashable, Iterable, Sequence

MOST: Final = 2**31 - 1
_LONGEST_TEXT: Final = 1000
_LONGEST_REASON: Final = 300


class Mistake(NamedTuple):
    """A mistake in a document: the path of the value, and what is wrong."""

    path: str
    reason: str

    def __str__(self) -> str:
        return f"{self.path}: {self.reason}" if self.path else self.reason

    def with_parent(self, parent: str) -> Mistake:
        if not parent or not self.path:
            return Mistake(parent or self.path, self.reason)
        separator = "" if self.path.startswith("[") else "."
        return Mistake(f"{parent}{separator}{self.path}", self.reason)


class Document(BaseModel):
    """A mapping of a configuration file. Unknown keys are mistakes, and values are not converted."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True, populate_by_name=False)


def _read_duration(value: Any) -> Any:
    if isinstance(value, float):
        return value
    try:
        return parse_duration_s(value)
    except InvalidValue as error:
        raise ValueError(str(error)) from error


def _check_quantity(value: Any) -> Any:
    try:
        Quantity.parse(value)
    except InvalidQuantity as error:
        raise ValueError(str(error)) from error
    return str(value)


def _replace_null(value: Any) -> Any:
    return {} if value is None else value


Finding = tuple[tuple[str | int, ...], str]
"""A mistake by its path within the document that is checked."""
Text = Annotated[str, Field(max_length=_LONGEST_TEXT)]
Name = Annotated[str, Field(min_length=1, max_length=_LONGEST_TEXT)]
Count = Annotated[int, Field(ge=0, le=MOST)]
Positive = Annotated[int, Field(ge=1, le=MOST)]
Duration = Annotated[float, BeforeValidator(_read_duration), WithJsonSchema({"type": "string", "format": "duration"})]
"""Seconds, written as `30s` or `1h30m`."""
QuantityText = Annotated[str, BeforeValidator(_check_quantity)]
"""A quantity as in Kubernetes, kept as it is written."""
NULL_IS_EMPTY: Final = BeforeValidator(_replace_null)

Model = TypeVar("Model", bound=BaseModel)


def parse_document(model: type[Model], document: Any, *, path: str = "") -> Model | list[Mistake]:
    """The document as a model, or all its mistakes, in the order of the document."""
    try:
        return model.model_validate(document)
    except ValidationError as error:
        return [mistake.with_parent(path) for mistake in list_mistakes(error)]


def list_mistakes(error: ValidationError) -> list[Mistake]:
    """The mistakes of a document in our words, in its order."""
    return [_describe(found) for found in error.errors(include_url=False, include_context=True)]


def check_whole(find: Callable[[dict[str, Any]], Iterable[Finding]]) -> Any:
    """A validator of a mapping as it is written: its mistakes are reported beside those of its parts."""

    def check(_model: Any, value: Any, validate: Callable[[Any], Any]) -> Any:
        found = list(find(value)) if isinstance(value, dict) else []
        try:
            model = validate(value)
        except ValidationError as error:
            details = error.errors(include_url=False, include_context=True)
            raise_mistakes("document", [*((part["loc"], _describe(part).reason) for part in details), *found])
            raise
        raise_mistakes("document", found)
        return model

    wrapping: Any = classmethod(check)  # pydantic's types know decorated methods only
    return model_validator(mode="wrap")(wrapping)


def list_values(document: dict[str, Any], name: str, key: str) -> list[Any]:
    """A value of every mapping in a list of a document. What has another shape is a mistake of its own."""
    items = document.get(name)
    return [item.get(key) for item in items if isinstance(item, dict)] if isinstance(items, list) else []


def find_repeated_values(
    document: dict[str, Any], name: str, key: str, noun: str, *, ignores_case: bool = False
) -> list[Finding]:
    """Texts that must be unique in a list of a document."""
    texts = [value for value in list_values(document, name, key) if isinstance(value, str)]
    repeated = find_repeated(text.lower() if ignores_case else text for text in texts)
    return [((name,), f"{noun} {text!r} occurs twice") for text in repeated]


def raise_mistakes(title: str, mistakes: Sequence[Finding]) -> None:
    """Ends a validator with several mistakes, each with the rest of its path; nothing happens if there are none."""
    if not mistakes:
        return
    details = [
        InitErrorDetails(type=PydanticCustomError("rule", "{reason}", {"reason": reason}), loc=path, input=None)
        for path, reason in mistakes
    ]
    raise ValidationError.from_exception_data(title, details)


def find_repeated(values: Iterable[Hashable]) -> list[Any]:
    """Values that occur more than once, in the order of their first occurrence."""
    return [value for value, number in Counter(values).items() if number > 1]


def format_path(parts: Iterable[str | int]) -> str:
    path = ""
    for part in parts:
        if isinstance(part, int):
            path += f"[{part}]"
        else:
            path += f".{part}" if path else part
    return path


_REASONS: Final = {
    "extra_forbidden": "unknown key",
    "missing": "is missing",
    "model_type": "must be a mapping",
    "dict_type": "must be a mapping",
    "list_type": "must be a list",
    "tuple_type": "must be a list",
    "int_type": "must be a whole number",
    "int_parsing_size": "is out of range",
    "bool_type": "must be true or false",
    "string_type": "must be a text",
    "string_too_short": "must not be empty",
    "string_too_long": "must have at most {max_length} characters",
    "greater_than_equal": "must be at least {ge}",
    "less_than_equal": "must be at most {le}",
    "literal_error": "must be {expected}",
    "too_short": "must have at least {min_length} item",
    "too_long": "must have at most {max_length} items",
}


def _describe(error: Any) -> Mistake:
    known = _REASONS.get(error["type"])
    reason = error["msg"].removeprefix("Value error, ") if known is None else known.format_map(error.get("ctx", {}))
    parts = [part for part in error["loc"] if part != "[key]"]
    return Mistake(format_path(parts), " ".join(str(reason).split())[:_LONGEST_REASON])
