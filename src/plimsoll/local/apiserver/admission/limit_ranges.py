"""LimitRanger: fills the requests and limits a pod leaves open, and holds pods and claims to a namespace's bounds."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.quantity import Quantity
from plimsoll.core.selectors import aggregate
from plimsoll.local.apiserver.admission.attempts import forbidden
from plimsoll.local.apiserver.admission.limit_bounds import claim_problems, pod_problems
from plimsoll.local.apiserver.storage import ListQuery

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.local.apiserver.admission.attempts import Attempt
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CLAIMS: Final = "persistentvolumeclaims"


class LimitRanger:
    """Pods are looked at when they are made (their resources do not change by an update), claims at every write."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutate(self, attempt: Attempt) -> None:
        if attempt.creates("pods"):
            assert attempt.obj is not None
            for limit_range in self._limit_ranges(attempt.namespace):
                fill_in(attempt.obj, limit_range)

    def validate(self, attempt: Attempt) -> None:
        is_pod = attempt.creates("pods")
        is_leaving = bool((attempt.old or {}).get("metadata", {}).get("deletionTimestamp"))
        if not is_pod and (is_leaving or not attempt.writes(_CLAIMS)):
            return
        assert attempt.obj is not None
        for limit_range in self._limit_ranges(attempt.namespace):
            limits = _limits(limit_range)
            problems = pod_problems(attempt.obj, limits) if is_pod else claim_problems(attempt.obj, limits)
            if problems:
                raise forbidden(attempt, aggregate(problems))

    def _limit_ranges(self, namespace: str) -> Iterator[Json]:
        for stored in self._store.list("limitranges", ListQuery(namespace=namespace)).items:
            yield stored.body()


def fill_in(pod: Json, limit_range: Json) -> None:
    """Give every container what the range has as default and the container does not say, and tell so in a note."""
    defaults: dict[str, Json] = {"requests": {}, "limits": {}}
    for limit in _limits(limit_range):
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


def _limits(limit_range: Json) -> list[Json]:
    return (limit_range.get("spec") or {}).get("limits") or []
