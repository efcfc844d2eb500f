"""Lists under strategic merge: maps are matched by their merge key, scalars united; order has its own rules.

The order of a merged list: items that the patch names have the patch's order (or that of `$setElementOrder`), the
others the server's; where both orders leave a choice, the patch comes first. Every look-up is by key, so that lists of
many thousand items stay linear.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.patches.strategic_errors import (
    bad_patch_type,
    build_internal_error,
    build_mixed_types_error,
    no_list_of_lists,
    no_merge_key,
)
from plimsoll.objects.schema import go_text
from plimsoll.objects.schema.json_values import build_identity

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

_DIRECTIVE = "$patch"
_Identity = tuple[str, Any]


class ListMerge:
    """How one list field is merged; without a merge key its items are scalars."""

    def __init__(self, merge_key: str, merge_maps: Callable[[dict[str, Any], dict[str, Any]], dict[str, Any]]) -> None:
        self._merge_key = merge_key
        self._merge_maps = merge_maps

    def merge(self, before: list[Any], patch: list[Any]) -> list[Any]:
        """The list in the order of the patch's items and of the server's."""
        if not before and not patch:
            return before
        if not _holds_maps(before, patch):
            united = list({build_identity(item): item for item in (*before, *patch)}.values())
            return self._sort_items(united, patch, before)
        if not self._merge_key:
            raise build_internal_error("cannot merge lists without merge key for type struct")
        before, patch = self._apply_special_items(before, patch)
        return self._sort_items(self._merge_items(before, patch), patch, before)

    def sort_items(self, before: list[Any] | None, patch: list[Any] | None, *, order: list[Any]) -> list[Any]:
        """The merged list in the order that `$setElementOrder` gives."""
        if before is None:
            united = patch or []
        elif patch is None:
            united = before
        else:
            united = self.merge(before, patch)
        if not before and not patch:
            raise build_internal_error("no elements in any of the given slices")
        return self._sort_items(united, order, before or [])

    def check_order(self, patch: list[Any], order: list[Any]) -> None:
        """The items of the patch must stand in `order`, in the same sequence; deletions do not count."""
        if not order:
            return
        wanted = iter([self._get_identity(item) for item in order])
        for item in patch:
            if isinstance(item, dict) and _DIRECTIVE in item:
                continue
            own = self._get_identity(item)
            if not any(item == own for item in wanted):
                raise build_internal_error(
                    f"The order in patch list:\n{go_text.format_plain(patch)}\n doesn't match $setElementOrder list:\n"
                    f"{go_text.format_plain(order)}\n"
                )

    def _apply_special_items(self, before: list[Any], patch: list[Any]) -> tuple[list[Any], list[Any]]:
        """Carries out `$patch: delete` and `$patch: replace` items; returns both lists without them."""
        plain: list[Any] = []
        deleted: set[_Identity] = set()
        replaces = False
        for item in patch:
            directive = item.get(_DIRECTIVE, _DIRECTIVE)
            if directive == _DIRECTIVE:
                plain.append(item)
            elif directive == "delete":
                deleted.add(self._get_identity(item))
            elif directive == "replace":
                replaces = True
            elif directive == "merge":
                raise build_internal_error("merging lists cannot yet be specified in the patch")
            else:
                raise bad_patch_type(directive, item)
        if replaces:
            return plain, []
        if deleted:
            before = [item for item in before if build_identity(item.get(self._merge_key)) not in deleted]
        return before, plain

    def _merge_items(self, before: list[Any], patch: list[Any]) -> list[Any]:
        merged = list(before)
        positions: dict[_Identity, int] = {}
        for position, item in enumerate(before):
            if self._merge_key in item:
                positions.setdefault(build_identity(item[self._merge_key]), position)
        for item in patch:
            own = self._get_identity(item)
            if own in positions:
                merged[positions[own]] = self._merge_maps(merged[positions[own]], item)
            else:
                positions[own] = len(merged)
                merged.append(self._merge_maps({}, item))
        return merged

    def _sort_items(self, items: list[Any], patch_order: list[Any], server_order: list[Any]) -> list[Any]:
        """Sorts what the patch names by the patch, the rest by the server, and interleaves them by the server."""
        in_patch = self._index_positions(patch_order)
        on_server = self._index_positions(server_order)
        named = [(self._get_identity(item), item) for item in items]
        left = [entry for entry in named if entry[0] not in in_patch]
        right = sorted((entry for entry in named if entry[0] in in_patch), key=lambda entry: in_patch[entry[0]])
        left.sort(key=lambda entry: on_server.get(entry[0], len(on_server)))
        return _interleave(left, right, on_server)

    def _index_positions(self, items: list[Any]) -> dict[_Identity, int]:
        positions: dict[_Identity, int] = {}
        for position, item in enumerate(items):
            positions.setdefault(self._get_identity(item), position)
        return positions

    def _get_identity(self, item: Any) -> _Identity:
        if not self._merge_key:
            return build_identity(item)
        if not isinstance(item, dict):
            raise build_mixed_types_error({}, item)
        if self._merge_key not in item:
            raise no_merge_key(item, self._merge_key)
        return build_identity(item[self._merge_key])


def _holds_maps(before: Iterable[Any], patch: Iterable[Any]) -> bool:
    """Whether the items are maps; they must all be of one type, and not lists."""
    first: Any = None
    for position, item in enumerate((*before, *patch)):
        if position == 0:
            first = item
        if isinstance(first, list):
            raise no_list_of_lists()
        if type(item) is not type(first):
            raise build_mixed_types_error(first, item)
    return isinstance(first, dict)


def _interleave(
    left: list[tuple[_Identity, Any]], right: list[tuple[_Identity, Any]], on_server: dict[_Identity, int]
) -> list[Any]:
    """Keeps both orders; an item of `left` goes before one of `right` only if it does so on the server."""
    result: list[Any] = []
    taken = 0
    for own, item in right:
        limit = on_server.get(own, -1)
        while taken < len(left) and on_server.get(left[taken][0], limit) < limit:
            result.append(left[taken][1])
            taken += 1
        result.append(item)
    result += [item for _, item in left[taken:]]
    return result
