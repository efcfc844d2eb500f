"""Errors of fields, with the messages of Kubernetes: the results of every validation in Plimsoll.

A `FieldError` renders itself as the API server does, alone (`text`), as a cause of a Status (`message`) and together
with others (`build_invalid_status`). It is generic: custom resources, CRDs and built-in kinds use the same. Paths are
plain strings built by `child`, `index` and `key`; the empty path is Go's nil path and is printed `<nil>`.
"""

from __future__ import annotations

from enum import StrEnum
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.values import Value
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

MAX_LISTED_ERRORS: Final = 1_000


class ErrorType(StrEnum):
    """The reason of a cause; its label is how messages begin."""

    REQUIRED = "FieldValueRequired"
    INVALID = "FieldValueInvalid"
    NOT_SUPPORTED = "FieldValueNotSupported"
    FORBIDDEN = "FieldValueForbidden"
    DUPLICATE = "FieldValueDuplicate"
    TOO_LONG = "FieldValueTooLong"
    TOO_MANY = "FieldValueTooMany"
    TYPE_INVALID = "FieldValueTypeInvalid"
    NOT_FOUND = "FieldValueNotFound"
    INTERNAL = "InternalError"

    @property
    def label(self) -> str:
        return _LABELS[self]


_LABELS = {
    ErrorType.REQUIRED: "Required value",
    ErrorType.INVALID: "Invalid value",
    ErrorType.NOT_SUPPORTED: "Unsupported value",
    ErrorType.FORBIDDEN: "Forbidden",
    ErrorType.DUPLICATE: "Duplicate value",
    ErrorType.TOO_LONG: "Too long",
    ErrorType.TOO_MANY: "Too many",
    ErrorType.TYPE_INVALID: "Invalid value",
    ErrorType.NOT_FOUND: "Not found",
    ErrorType.INTERNAL: "Internal error",
}

_VALUE_NEVER_SHOWN = {ErrorType.REQUIRED, ErrorType.FORBIDDEN, ErrorType.TOO_LONG, ErrorType.INTERNAL}


class _Omitted:
    """The type of `OMITTED`."""

    def __repr__(self) -> str:
        return "OMITTED"


# Passed as the value, it omits the value from the message.
OMITTED: Final = _Omitted()


class FieldError(Value):
    """One complaint about one field."""

    type: ErrorType
    path: str
    value: Any = OMITTED
    detail: str = ""

    @property
    def field(self) -> str:
        return self.path or "<nil>"

    @property
    def message(self) -> str:
        """The message of a Status cause: `Invalid value: 0: must be positive`."""
        parts = [self.type.label]
        if self.type not in _VALUE_NEVER_SHOWN and self.value is not OMITTED:
            parts.append(_format_value(self.value))
        if self.detail:
            parts.append(self.detail)
        return ": ".join(parts)

    @property
    def text(self) -> str:
        """The whole error: `spec.count: Invalid value: 0: must be positive`."""
        return f"{self.field}: {self.message}"

    @property
    def cause(self) -> dict[str, str]:
        return {"reason": self.type.value, "message": self.message, "field": self.field}


def _format_value(value: Any) -> str:
    if value is None:
        return "null"
    if isinstance(value, str):
        return go_text.quote(value)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return go_text.format_number(value)
    return go_text.as_json(value)


def child(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def index(path: str, position: int) -> str:
    return f"{path}[{position}]"


def key(path: str, name: str) -> str:
    return f"{path}[{name}]"


def required(path: str, detail: str = "") -> FieldError:
    return FieldError(type=ErrorType.REQUIRED, path=path, detail=detail)


def invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(type=ErrorType.INVALID, path=path, value=value, detail=detail)


def list_invalid(path: str, value: str, rule: Callable[[str], list[str]]) -> list[FieldError]:
    """One "Invalid value" for each complaint of a rule."""
    return [invalid(path, value, problem) for problem in rule(value)]


def type_invalid(path: str, value: Any, detail: str) -> FieldError:
    return FieldError(type=ErrorType.TYPE_INVALID, path=path, value=value, detail=detail)


def not_supported(path: str, value: Any, supported: Iterable[str]) -> FieldError:
    listed = ", ".join(go_text.quote(text) for text in supported)
    detail = f"supported values: {listed}" if listed else ""
    return FieldError(type=ErrorType.NOT_SUPPORTED, path=path, value=value, detail=detail)


def validate_choice(path: str, value: Any, supported: Sequence[str]) -> list[FieldError]:
    """A field that must be one of a few words: Required when empty."""
    if not value:
        return [required(path)]
    return [] if value in supported else [not_supported(path, value, supported)]


def forbidden(path: str, detail: str) -> FieldError:
    return FieldError(type=ErrorType.FORBIDDEN, path=path, detail=detail)


def duplicate(path: str, value: Any) -> FieldError:
    return FieldError(type=ErrorType.DUPLICATE, path=path, value=value)


def not_found(path: str, value: Any) -> FieldError:
    return FieldError(type=ErrorType.NOT_FOUND, path=path, value=value)


def too_long(path: str, limit: int) -> FieldError:
    detail = f"may not be more than {limit} bytes" if limit >= 0 else "value is too long"
    return FieldError(type=ErrorType.TOO_LONG, path=path, detail=detail)


def too_many(path: str, actual: int, limit: int) -> FieldError:
    detail = f"must have at most {limit} items" if limit >= 0 else "has too many items"
    return FieldError(type=ErrorType.TOO_MANY, path=path, value=actual, detail=detail)


def internal_error(path: str, detail: str) -> FieldError:
    return FieldError(type=ErrorType.INTERNAL, path=path, detail=detail)


def format_aggregate(errors: Iterable[FieldError]) -> str:
    """All errors in one line, each once; brackets only around several."""
    texts = list(dict.fromkeys(error.text for error in errors))
    return texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]"


def format_invalid_message(*, kind: str, group: str, name: str, errors: Sequence[FieldError]) -> str:
    qualified = f"{kind}.{group}" if group else kind
    return f"{qualified} {go_text.quote(name)} is invalid: {format_aggregate(errors)}"


def build_invalid_status(*, kind: str, group: str, name: str, errors: Sequence[FieldError]) -> dict[str, Any]:
    """The body of the 422 a real API server answers with.

    Of more than `MAX_LISTED_ERRORS` errors the first are listed: 100,000 would make an answer of 65 MB.
    """
    identity = {"name": name, "group": group, "kind": kind}
    listed = errors[:MAX_LISTED_ERRORS]
    message = format_invalid_message(kind=kind, group=group, name=name, errors=listed)
    if len(errors) > len(listed):
        message += f" (and {len(errors) - len(listed)} more errors)"
    return {
        "kind": "Status",
        "apiVersion": "v1",
        "metadata": {},
        "status": "Failure",
        "message": message,
        "reason": "Invalid",
        "details": {
            **{name_: text for name_, text in identity.items() if text},
            "causes": [error.cause for error in listed],
        },
        "code": 422,
    }
