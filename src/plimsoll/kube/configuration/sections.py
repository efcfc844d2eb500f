"""Reads the fields of a kubeconfig file; errors name the file and the field.

Errors name the type that was found, never the value: most values are secrets.
"""

from __future__ import annotations

import base64
import binascii
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterator

_NAMES: Final = {
    dict: "a mapping",
    list: "a list",
    str: "text",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    type(None): "nothing",
}


class Section:
    """One mapping of a file. A field that is null, or is not there, is empty."""

    __slots__ = ("_values", "file", "path")

    def __init__(self, values: dict[str, Any], *, file: str, path: str = "") -> None:
        self._values = values
        self.file = file
        self.path = path

    def __repr__(self) -> str:
        return f"Section({self.file}: {self.path})"

    def __contains__(self, name: str) -> bool:
        return self._values.get(name) is not None

    def wrong(self, name: str, problem: str) -> InvalidInput:
        """The complaint about a field; an empty name is the section itself."""
        return InvalidInput(problem, path=self.place(name))

    def place(self, name: str) -> str:
        field = ".".join(part for part in (self.path, name) if part)
        return f"{self.file}: {field}" if field else self.file

    def text(self, name: str) -> str:
        value = self._of_type(name, str, "")
        assert isinstance(value, str)
        if "\0" in value:
            raise self.wrong(name, "holds a null character")
        return value

    def flag(self, name: str) -> bool:
        value = self._of_type(name, bool, default=False)
        assert isinstance(value, bool)
        return value

    def data(self, name: str) -> bytes:
        """What is written in base64. Line breaks are allowed in it, as Go allows them."""
        written = self.text(name).replace("\n", "").replace("\r", "")
        try:
            return base64.b64decode(written, validate=True)
        except (binascii.Error, ValueError):
            raise self.wrong(name, "is not base64") from None

    def file_path(self, name: str) -> str:
        """The path of another file; a relative one starts where this file lies."""
        written = self.text(name)
        return str(Path(self.file).absolute().parent / written) if written else ""

    def texts(self, name: str) -> tuple[str, ...]:
        values = self._of_type(name, list, [])
        for index, value in enumerate(values):
            if not isinstance(value, str) or "\0" in value:
                raise self.wrong(f"{name}[{index}]", f"must be text, and is {describe_type(value)}")
        return tuple(values)

    def section(self, name: str) -> Section:
        """A mapping within; an empty one when it is not there."""
        return Section(self._of_type(name, dict, {}), file=self.file, path=self._below(name))

    def sections(self, name: str) -> Iterator[Section]:
        for index, value in enumerate(self._of_type(name, list, [])):
            if not isinstance(value, dict):
                raise self.wrong(f"{name}[{index}]", f"must be a mapping, and is {describe_type(value)}")
            yield Section(value, file=self.file, path=self._below(f"{name}[{index}]"))

    def names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def raw(self, name: str) -> Any:
        return self._values.get(name)

    def _below(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _of_type(self, name: str, wanted: type, default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, wanted):
            raise self.wrong(name, f"must be {_NAMES[wanted]}, and is {describe_type(value)}")
        return value


def describe_type(value: Any) -> str:
    """The type of a value, in words."""
    return _NAMES.get(type(value), type(value).__name__)
