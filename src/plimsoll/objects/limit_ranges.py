"""The defaults of LimitRanges for pods without requests and limits. Pure: bodies in, bodies out.

The embedded API server admits pods with it; planning applies it to pods that do not exist yet (pod sets of
ProvisioningRequests, entries of a scenario).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.quantity import Quantity
from plimsoll.objects.builtin.defaults.pods import default_requests_and_host_ports

if TYPE_CHECKING:
    from collections.abc import Iterable

Json = dict[str, Any]

ANNOTATION: Final = "kubernetes.io/limit-ranger"


def as_admitted(pod: Json, limit_ranges: Iterable[Json]) -> Json:
    """A copy of a decodable pod with the resources that it would have after admission."""
    copy: Json = strip_nulls(pod)
    default_requests_and_host_ports(copy.setdefault("spec", {}))
    copy.setdefault("metadata", {})
    for limit_range in limit_ranges:
        fill_in(copy, limit_range)
    return copy


def strip_nulls(value: Any) -> Any:
    """A copy; null is absent."""
    if isinstance(value, dict):
        return {key: strip_nulls(member) for key, member in value.items() if member is not None}
    return [strip_nulls(item) for item in value if item is not None] if isinstance(value, list) else value


def fill_in(pod: Json, limit_range: Json) -> None:
    """Give every container the defaults that it does not set itself, and record that in an annotation."""
    defaults: dict[str, Json] = {"requests": {}, "limits": {}}
    for limit in list_limits(limit_range):
        if limit.get("type") == "Container":
            defaults["requests"].update(limit.get("defaultRequest") or {})
            defaults["limits"].update(limit.get("default") or {})
    notes: list[str] = []
    for field, called in (("containers", "container"), ("initContainers", "init container")):
        for container in pod["spec"].get(field) or ():
            filled = {part: _fill(container, part, defaults[part]) for part in ("limits", "requests")}
            for part, word in (("requests", "request"), ("limits", "limit")):
                if filled[part]:
                    notes.append(f"{', '.join(filled[part])} {word} for {called} {container.get('name', '')}")
    if notes:
        annotations = pod["metadata"].setdefault("annotations", {})
        annotations[ANNOTATION] = f"LimitRanger plugin set: {'; '.join(notes)}"


def _fill(container: Json, part: str, defaults: Json) -> list[str]:
    present = (container.get("resources") or {}).get(part) or {}
    missing = sorted(name for name in defaults if name not in present)
    if missing:
        resources = container.setdefault("resources", {})
        filled = present | {name: str(Quantity.parse(defaults[name])) for name in missing}
        resources[part] = dict(sorted(filled.items()))
    return missing


def list_limits(limit_range: Json) -> list[Json]:
    return (limit_range.get("spec") or {}).get("limits") or []
