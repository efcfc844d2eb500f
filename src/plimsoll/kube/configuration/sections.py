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

    def build_error(self, name: str, problem: str) -> InvalidInput:
        """The error about a field; an empty name is the section itself."""
        return InvalidInput(problem, path=self.get_path(name))

    def get_path(self, name: str) -> str:
        field = ".".join(part for part in (self.path, name) if part)
        return f"{self.file}: {field}" if field else self.file

    def get_text(self, name: str) -> str:
        value = self._get_typed(name, str, "")
        assert isinstance(value, str)
        if "\0" in value:
            raise self.build_error(name, "holds a null character")
        return value

    def get_flag(self, name: str) -> bool:
        value = self._get_typed(name, bool, default=False)
        assert isinstance(value, bool)
        return value

    def get_data(self, name: str) -> bytes:
        """A field in base64, decoded. Line breaks are allowed in it, as in Go."""
        written = self.get_text(name).replace("\n", "").replace("\r", "")
        try:
            return base64.b64decode(written, validate=True)
        except (binascii.Error, ValueError):
            raise self.build_error(name, "is not base64") from None

    def get_file_path(self, name: str) -> str:
        """The path of another file; a relative path starts in the folder of this file."""
        written = self.get_text(name)
        return str(Path(self.file).absolute().parent / written) if written else ""

    def get_texts(self, name: str) -> tuple[str, ...]:
        values = self._get_typed(name, list, [])
        for index, value in enumerate(values):
            if not isinstance(value, str) or "\0" in value:
                raise self.build_error(f"{name}[{index}]", f"must be text, and is {describe_type(value)}")
        return tuple(values)

    def get_section(self, name: str) -> Section:
        """A nested mapping; empty if it is absent."""
        return Section(self._get_typed(name, dict, {}), file=self.file, path=self._join_path(name))

    def list_sections(self, name: str) -> Iterator[Section]:
        for index, value in enumerate(self._get_typed(name, list, [])):
            if not isinstance(value, dict):
                raise self.build_error(f"{name}[{index}]", f"must be a mapping, and is {describe_type(value)}")
            yield Section(value, file=self.file, path=self._join_path(f"{name}[{index}]"))

    def list_names(self) -> tuple[str, ...]:
        return tuple(self._values)

    def get_raw(self, name: str) -> Any:
        return self._values.get(name)

    def _join_path(self, name: str) -> str:
        return f"{self.path}.{name}" if self.path else name

    def _get_typed(self, name: str, wanted: type, default: Any) -> Any:
        value = self._values.get(name)
        if value is None:
            return default
        if not isinstance(value, wanted):
            raise self.build_error(name, f"must be {_NAMES[wanted]}, and is {describe_type(value)}")
        return value


def describe_type(value: Any) -> str:
    """The type of a value, in words."""
    return _NAMES.get(type(value), type(value).__name__)
