"""The caches of a client of the protocol. Pure.

Groups, the groups of nodes, and templates are valid until the next refresh. That a node has no group is not cached:
its group may exist a moment later. Labels and types of accelerators are read once. A call that the server does not
implement is tried again after a refresh, because the server may have been replaced.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Generic, TypeVar

if TYPE_CHECKING:
    from plimsoll.nodes.providers.values import NodeRef

T = TypeVar("T")


class CachedAnswer(Generic[T]):
    """One cached answer; None if there is none."""

    __slots__ = ("answer",)

    def __init__(self) -> None:
        self.answer: T | None = None

    def forget(self) -> None:
        self.answer = None


class Caches:
    """The caches of one client."""

    def __init__(self) -> None:
        self.groups: CachedAnswer[tuple[Any, ...]] = CachedAnswer()
        self.machine_types: CachedAnswer[tuple[Any, ...]] = CachedAnswer()
        self.gpu_label: CachedAnswer[str] = CachedAnswer()
        self.gpu_types: CachedAnswer[tuple[str, ...]] = CachedAnswer()
        self.templates: dict[str, Any] = {}
        self.atomic: dict[str, bool] = {}
        self._group_of: dict[str, Any] = {}
        self._missing: set[str] = set()

    def forget_all(self) -> None:
        self.groups.forget()
        self.machine_types.forget()
        self.templates.clear()
        self.atomic.clear()
        self._group_of.clear()
        self._missing.clear()

    def forget_group(self, group: str) -> None:
        """Forget groups after a change; the groups of nodes stay cached."""
        self.groups.forget()
        self.templates.pop(group, None)

    # ---- groups of nodes

    def find_group(self, node: NodeRef) -> Any | None:
        return self._group_of.get(_get_key(node))

    def keep_group_of(self, node: NodeRef, group: Any) -> None:
        self._group_of[_get_key(node)] = group

    # ---- what the server does not have

    def is_missing(self, method: str) -> bool:
        return method in self._missing

    def note_missing(self, method: str) -> None:
        self._missing.add(method)


def _get_key(node: NodeRef) -> str:
    return node.provider_id or node.name
