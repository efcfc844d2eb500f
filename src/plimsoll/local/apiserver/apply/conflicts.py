"""Apply conflicts and rejections, in the form a client receives."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.local.apiserver.apply.fieldpath.elements import format_path
from plimsoll.objects.schema import go_text

if TYPE_CHECKING:
    from plimsoll.local.apiserver.apply.managed_fields import ManagerIdentity
    from plimsoll.local.apiserver.apply.updater import Conflicts


class ApplyRefused(Value):
    """What to answer; an empty `reason` and no causes stay out of the Status."""

    code: int
    reason: str
    message: str
    causes: tuple[dict[str, Any], ...] = ()


def bad_request(message: str) -> ApplyRefused:
    return ApplyRefused(code=400, reason="BadRequest", message=message)


def internal_error(message: str) -> ApplyRefused:
    return ApplyRefused(code=500, reason="", message=message)


def conflict(conflicts: Conflicts) -> ApplyRefused:
    """409 with one cause a field: managers in order of their names, fields in the order of the set."""
    listed = [
        (_format_manager(identity), format_path(path))
        for identity in sorted(conflicts.by_manager)
        for path in conflicts.by_manager[identity].iterate_paths()
    ]
    causes = tuple(
        {"reason": "FieldManagerConflict", "message": f"conflict with {manager}", "field": field}
        for manager, field in listed
    )
    return ApplyRefused(code=409, reason="Conflict", message=_format_summary(listed), causes=causes)


def _format_summary(listed: list[tuple[str, str]]) -> str:
    if len(listed) == 1:
        manager, field = listed[0]
        return f"Apply failed with 1 conflict: conflict with {manager}: {field}"
    lines: list[str] = []
    for manager in dict.fromkeys(manager for manager, _ in listed):
        lines.append(f"conflicts with {manager}:")
        lines += [f"- {field}" for owner, field in listed if owner == manager]
    return f"Apply failed with {len(listed)} conflicts: " + "\n".join(lines)


def _format_manager(identity: ManagerIdentity) -> str:
    name = go_text.quote(identity.manager)
    if identity.subresource:
        name = f"{name} with subresource {go_text.quote(identity.subresource)}"
    return name if identity.applies else f"{name} using {identity.api_version}"
