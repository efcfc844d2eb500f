"""Optional values that a test knows to be present."""

from __future__ import annotations

from typing import TypeVar

T = TypeVar("T")


def present(value: T | None) -> T:
    """The value, which must not be None."""
    assert value is not None
    return value


def instance_of(kind: type[T], value: object) -> T:
    """The value, which must be of this kind."""
    assert isinstance(value, kind)
    return value
