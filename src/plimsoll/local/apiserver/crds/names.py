"""The names a CustomResourceDefinition requests, which of them are accepted, and the conditions that report it.

Pure. A name is rejected if another definition of the group or a built-in resource has it. Accepted names stay accepted,
except names of built-in resources, which are never accepted.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

from plimsoll.local.apiserver.strategies.crd_deletion import set_condition

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

Json = dict[str, Any]


class _Cause(NamedTuple):
    """Why a condition has its status."""

    reason: str
    message: str


def build_accepted_names_status(
    definition: Json, others: Iterable[Json], *, now: str, builtin: Sequence[Json] = ()
) -> Json:
    """The status a definition has once its names are settled; `builtin` are names of built-in resources."""
    status = definition.get("status") or {}
    taken = [
        other.get("status", {}).get("acceptedNames") or {}
        for other in others
        if other["spec"]["group"] == definition["spec"]["group"]
    ]
    names = definition["spec"]["names"]
    accepted, conflict = _accept_names(names, status.get("acceptedNames") or {}, [*taken, *builtin])
    status = {**status, "acceptedNames": accepted}
    if conflict is None:
        named = _build_condition("NamesAccepted", "True", _Cause("NoConflicts", "no conflicts found"), now=now)
    else:
        named = _build_condition("NamesAccepted", "False", conflict, now=now)
    status = set_condition(status, named)
    if _is_established(status) and not is_reserved(names, builtin):
        return status
    if conflict is None:
        cause = _Cause("InitialNamesAccepted", "the initial names have been accepted")
        return set_condition(status, _build_condition("Established", "True", cause, now=now))
    cause = _Cause("NotAccepted", "not all names are accepted")
    return set_condition(status, _build_condition("Established", "False", cause, now=now))


def is_reserved(names: Json, builtin: Iterable[Json]) -> bool:
    """Whether the plural or the kind is that of a built-in resource."""
    return any(names.get("plural") == item["plural"] or names.get("kind") == item["kind"] for item in builtin)


def _accept_names(wanted: Json, before: Json, taken: list[Json]) -> tuple[Json, _Cause | None]:
    """The names a definition has from now on, and the last conflict found, which is the one that is reported."""
    resources = _collect_resource_names(taken)
    kinds = {name for item in taken for name in (item.get("kind"), item.get("listKind")) if name}
    accepted: Json = {"plural": "", **before}
    accepted.setdefault("kind", "")
    conflict: _Cause | None = None
    for name, (reason, others) in {
        "plural": ("PluralConflict", resources),
        "singular": ("SingularConflict", resources),
        "shortNames": ("ShortNamesConflict", resources),
        "kind": ("KindConflict", kinds),
        "listKind": ("ListKindConflict", kinds),
    }.items():
        value = wanted.get(name)
        listed = value if isinstance(value, list) else [value]
        clash = next((item for item in listed if item in others), None)
        if clash is not None:
            conflict = _Cause(reason, f'"{clash}" is already in use')
        else:
            _set(accepted, name, value)
    _set(accepted, "categories", wanted.get("categories"))
    return accepted, conflict


def _set(names: Json, name: str, value: Any) -> None:
    if value:
        names[name] = value
    elif name not in {"plural", "kind"}:
        names.pop(name, None)


def _collect_resource_names(taken: list[Json]) -> set[str]:
    names = {name for item in taken for name in (item.get("plural"), item.get("singular")) if name}
    return names | {name for item in taken for name in item.get("shortNames") or ()}


def _is_established(status: Json) -> bool:
    return any(
        condition["type"] == "Established" and condition["status"] == "True"
        for condition in status.get("conditions") or ()
    )


def _build_condition(kind: str, status: str, cause: _Cause, *, now: str) -> Json:
    return {
        "type": kind,
        "status": status,
        "lastTransitionTime": now,
        "reason": cause.reason,
        "message": cause.message,
    }
