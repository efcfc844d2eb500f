"""The errors of a strategic merge patch, in kube-apiserver's words."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.patches.results import bad_request, internal_error, not_applicable
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from plimsoll.local.apiserver.patches.results import PatchRefused


class BadStrategicPatch(Exception):
    """Leaves the merge at the first problem; never leaves `strategic_merge`."""

    def __init__(self, refusal: PatchRefused) -> None:
        super().__init__(refusal.message)
        self.refusal = refusal


def build_internal_error(message: str) -> BadStrategicPatch:
    return BadStrategicPatch(internal_error(message))


def build_malformed_error(message: str) -> BadStrategicPatch:
    return BadStrategicPatch(bad_request(message))


def no_list_of_lists() -> BadStrategicPatch:
    return BadStrategicPatch(not_applicable("lists of lists are not supported"))


def no_merge_key(item: dict[str, Any], merge_key: str) -> BadStrategicPatch:
    return build_internal_error(f"map: {go_text.format_plain(item)} does not contain declared merge key: {merge_key}")


def bad_patch_type(directive: Any, item: dict[str, Any]) -> BadStrategicPatch:
    return build_internal_error(
        f"unknown patch type: {go_text.format_plain(directive)} in map: {go_text.format_plain(item)}"
    )


def wrong_type(expected: str, actual: Any) -> BadStrategicPatch:
    return build_internal_error(f"expected a {expected}, but received a {go_text.get_type_name(actual)}")


def build_mixed_types_error(value: Any, other: Any) -> BadStrategicPatch:
    return build_internal_error(
        f"list element types are not identical: {go_text.get_type_name(value)} {go_text.get_type_name(other)}"
    )
