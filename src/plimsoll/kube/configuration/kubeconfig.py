"""Kubeconfig files: finding them, reading them, and making one configuration of several.

Merges as kubectl does: for each name the entry of the first file counts as a whole, nothing of a later entry is
mixed in, and the current context is that of the first file that names one. What an entry holds is read only when it is
used (`clusters`, `users`), so that a mistake in one entry does not affect the others.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidInput, UnreadableDocument
from plimsoll.kube.configuration.sections import Section, describe_type
from plimsoll.objects.codec.manifests import read_documents

if TYPE_CHECKING:
    from collections.abc import Iterable

_LARGEST_FILE_BYTES: Final = 16 * 1024 * 1024
_PLACE: Final = re.compile(r"line \d+, column \d+")


@dataclass(slots=True, kw_only=True)
class Kubeconfig:
    """Several files as one. Entries by name, each knowing its file and its place in it."""

    clusters: dict[str, Section] = field(default_factory=dict)
    users: dict[str, Section] = field(default_factory=dict)
    contexts: dict[str, Section] = field(default_factory=dict)
    current_context: str = ""
    current_context_file: str = ""
    files: list[str] = field(default_factory=list)
    """Those that were there."""

    @property
    def is_empty(self) -> bool:
        return not (self.clusters or self.users or self.contexts or self.current_context)

    def add(self, document: Section) -> None:
        """Add the next file; known entries stay."""
        self.files.append(document.file)
        for entries, plural, singular in (
            (self.clusters, "clusters", "cluster"),
            (self.users, "users", "user"),
            (self.contexts, "contexts", "context"),
        ):
            for name, entry in _read_named_entries(document, plural, singular=singular).items():
                entries.setdefault(name, entry)
        if not self.current_context:
            self.current_context = document.get_text("current-context")
            self.current_context_file = document.file


def read_kubeconfig(files: Iterable[str], *, may_be_missing: bool) -> Kubeconfig:
    """The files as one configuration. Raises InvalidInput, naming the file and the field."""
    merged = Kubeconfig()
    for file in files:
        document = _read(file, may_be_missing=may_be_missing)
        if document is not None:
            merged.add(document)
    return merged


def parse_kubeconfig(data: bytes, *, source: str) -> Kubeconfig:
    """A kubeconfig that is not a file, such as the content of a Secret. Raises `InvalidInput`, naming the field."""
    if len(data) > _LARGEST_FILE_BYTES:
        raise InvalidInput("is larger than 16 MiB: this is not a kubeconfig", path=source)
    config = Kubeconfig()
    config.add(_check(_read_first_document(data, file=source), file=source))
    return config


def _read(file: str, *, may_be_missing: bool) -> Section | None:
    try:
        with Path(file).open("rb") as opened:
            data = opened.read(_LARGEST_FILE_BYTES + 1)
    except FileNotFoundError:
        if may_be_missing:
            return None
        raise InvalidInput("no such file", path=file) from None
    except (OSError, ValueError) as error:
        raise InvalidInput(f"cannot be read: {_format_reason(error)}", path=file) from None
    if len(data) > _LARGEST_FILE_BYTES:
        raise InvalidInput("is larger than 16 MiB: this is not a kubeconfig file", path=file)
    return _check(_read_first_document(data, file=file), file=file)


def _read_first_document(data: bytes, *, file: str) -> Any:
    """Reads what kubectl reads: the first document only, and an empty file as an empty configuration."""
    try:
        return next((value for _, value in read_documents(data, source=file)), {})
    except UnreadableDocument as error:
        # An error about a tagged value would quote it, and it may be a token; its place is enough.
        place = _PLACE.match(error.problem)
        problem = f"{place[0]}: not YAML" if place and "!!" in error.problem else error.problem
        raise InvalidInput(problem, path=file) from None


def _check(document: Any, *, file: str) -> Section:
    if not isinstance(document, dict):
        raise InvalidInput(f"must be a mapping, and is {describe_type(document)}", path=file)
    section = Section(document, file=file)
    if section.get_text("kind") not in {"", "Config"}:
        raise section.build_error("kind", f'must be "Config", and is "{section.get_text("kind")}"')
    if section.get_text("apiVersion") not in {"", "v1"}:
        raise section.build_error("apiVersion", f'must be "v1", and is "{section.get_text("apiVersion")}"')
    return section


def _read_named_entries(document: Section, plural: str, *, singular: str) -> dict[str, Section]:
    """The entries of one file; their content is read later."""
    found: dict[str, Section] = {}
    for entry in document.list_sections(plural):
        name = entry.get_text("name")
        if name in found:
            raise entry.build_error("name", f'"{name}" occurs twice among the {plural}')
        found[name] = entry.get_section(singular)
    return found


def read_referenced(section: Section, field_name: str) -> bytes:
    """The content of the file that a field names."""
    file = section.get_file_path(field_name)
    try:
        return Path(file).read_bytes()
    except (OSError, ValueError) as error:
        raise section.build_error(field_name, f"{file} cannot be read: {_format_reason(error)}") from None


def _format_reason(error: OSError | ValueError) -> str:
    return (error.strerror or str(error)) if isinstance(error, OSError) else str(error)
