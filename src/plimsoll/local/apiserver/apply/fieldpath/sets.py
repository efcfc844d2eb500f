"""Sets of field paths, the algebra behind every ownership decision: what a manager owns, what a write changed.

A set is a tree: `members` are the elements at which a path of the set ends, `children` the elements below which others
continue. Sets are values: every operation returns a new one and shares what it can. Builders fill a fresh set through
`add` and `attach` before it is shared. The encoded form is cached per set.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.apply.fieldpath import elements

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator


class FieldSet:
    """A set of paths; never holds the empty path, nor a child that is empty."""

    __slots__ = ("_written", "children", "members")

    def __init__(self, members: Iterable[str] = (), children: dict[str, FieldSet] | None = None) -> None:
        self.members: set[str] = set(members)
        self.children: dict[str, FieldSet] = children or {}
        self._written: dict[str, Any] | None = None

    @classmethod
    def from_paths(cls, *paths: tuple[str, ...]) -> FieldSet:
        """Paths of plain field names: `("metadata", "labels")`."""
        result = cls()
        for path in paths:
            node = result
            for name in path[:-1]:
                node = node.children.setdefault(elements.from_field(name), cls())
            node.members.add(elements.from_field(path[-1]))
        return result

    def add(self, element: str) -> None:
        self.members.add(element)

    def attach(self, element: str, below: FieldSet) -> None:
        """Puts what was found below a step into the set, unless nothing was."""
        if below.members or below.children:
            self.children[element] = below

    def join(self, element: str, below: FieldSet) -> None:
        """The same where something may have been found below the step before."""
        if below.members or below.children:
            known = self.children.get(element)
            self.children[element] = below if known is None else known | below

    def __bool__(self) -> bool:
        return bool(self.members or self.children)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, FieldSet):
            return NotImplemented
        return self.members == other.members and self.children == other.children

    __hash__ = None  # type: ignore[assignment]  # equal by content, and builders still fill it

    def __repr__(self) -> str:
        return f"FieldSet({list(self.iterate_paths())!r})"

    def has(self, path: tuple[str, ...]) -> bool:
        node: FieldSet | None = self
        for element in path[:-1]:
            node = node.children.get(element) if node else None
        return node is not None and path[-1] in node.members

    def __or__(self, other: FieldSet) -> FieldSet:
        if not (other.members or other.children):
            return self
        if not (self.members or self.children):
            return other
        children = dict(self.children)
        for element, theirs in other.children.items():
            ours = children.get(element)
            children[element] = theirs if ours is None else ours | theirs
        return FieldSet(self.members | other.members, children)

    def __and__(self, other: FieldSet) -> FieldSet:
        result = FieldSet(self.members & other.members)
        for element in self.children.keys() & other.children.keys():
            result.attach(element, self.children[element] & other.children[element])
        return result

    def __sub__(self, other: FieldSet) -> FieldSet:
        """The paths of this set that are not in the other one; what lies below a removed path stays."""
        if not (other.members or other.children) or not (self.members or self.children):
            return self
        result = FieldSet(self.members - other.members)
        for element, ours in self.children.items():
            theirs = other.children.get(element)
            result.attach(element, ours if theirs is None else ours - theirs)
        return result

    def subtract_recursively(self, other: FieldSet) -> FieldSet:
        """As `-`, but a path takes everything below it along: what resets of fields need."""
        if not (other.members or other.children) or not (self.members or self.children):
            return self
        result = FieldSet(self.members - other.members)
        for element, ours in self.children.items():
            if element not in other.members:
                theirs = other.children.get(element)
                result.attach(element, ours if theirs is None else ours.subtract_recursively(theirs))
        return result

    def iterate_paths(self) -> Iterator[tuple[str, ...]]:
        """In Kubernetes' order: at each step first the paths that end there, then those that go on."""
        for element in elements.sort_elements(self.members):
            yield (element,)
        for element in elements.sort_elements(self.children):
            for rest in self.children[element].iterate_paths():
                yield (element, *rest)

    def to_fields_v1(self) -> dict[str, Any]:
        """Cached and shared: most of what a manager owns after a write was owned, and encoded, before."""
        if self._written is None:
            written: dict[str, Any] = {}
            members, children = self.members, self.children
            for element in elements.sort_elements(members | children.keys()):
                below = children.get(element)
                if below is None:
                    written[element] = {}
                else:
                    own: dict[str, Any] = {".": {}} if element in members else {}
                    written[element] = own | below.to_fields_v1()
            self._written = written
        return self._written

    @classmethod
    def from_fields_v1(cls, written: Any) -> FieldSet:
        """Raises `InvalidFieldSet` for what is not a fieldsV1."""
        if not isinstance(written, dict):
            raise elements.InvalidFieldSet("must be an object")
        result = cls()
        for text, content in written.items():
            if text == ".":
                continue
            element = elements.read(text)
            if content == {}:
                result.members.add(element)
                continue
            below = cls.from_fields_v1(content)
            if "." in content:
                result.members.add(element)
            result.attach(element, below)
        return result
