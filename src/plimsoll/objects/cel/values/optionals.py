"""CEL's optional values: `optional.of(x)`, `optional.none()`, and `oldSelf` under optionalOldSelf."""

from __future__ import annotations

from dataclasses import dataclass

_ABSENT = object()


@dataclass(frozen=True, slots=True)
class CelOptional:
    """A value or nothing. Built by `of` and `none`, never by the constructor."""

    _content: object = _ABSENT

    @classmethod
    def of(cls, value: object) -> CelOptional:
        return cls(value)

    @classmethod
    def none(cls) -> CelOptional:
        return _NONE

    @property
    def has_value(self) -> bool:
        return self._content is not _ABSENT

    @property
    def value(self) -> object:
        """The value; valid only if `has_value` is true."""
        assert self.has_value
        return self._content


_NONE = CelOptional()
