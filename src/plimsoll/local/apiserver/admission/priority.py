"""Priority: sets a pod's priority from its class, and allows at most one class as the global default."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.local.apiserver.admission.attributes import CREATE, forbidden
from plimsoll.local.apiserver.storage import Key

if TYPE_CHECKING:
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.storage import Store

Json = dict[str, Any]

_CLASSES: Final = "scheduling.k8s.io/priorityclasses"
_NO_CLASS: Final[Json] = {"value": 0, "preemptionPolicy": "PreemptLowerPriority"}
_COMPUTED: Final = "priority admission controller computed {} from the given PriorityClass name"


class _Class(msgspec.Struct, gc=False):
    is_default: bool | None = msgspec.field(name="globalDefault", default=None)


_decoder: Final = msgspec.json.Decoder(_Class)


class Priority:
    """Reads all classes for each pod, because there are few."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def mutate(self, attempt: AdmissionAttributes) -> None:
        if not attempt.writes("pods"):
            return
        assert attempt.obj is not None
        spec = attempt.obj["spec"]
        if attempt.operation == CREATE:
            self._resolve(attempt, spec)
            return
        before = (attempt.old or {}).get("spec", {})
        for field in ("priority", "preemptionPolicy"):
            if spec.get(field) is None and before.get(field) is not None:
                spec[field] = before[field]

    def validate(self, attempt: AdmissionAttributes) -> None:
        if not attempt.writes(_CLASSES) or not (attempt.obj or {}).get("globalDefault"):
            return
        present = self._default()
        if present is not None and (attempt.operation == CREATE or present["metadata"]["name"] != attempt.shown_name):
            name = present["metadata"]["name"]
            raise forbidden(attempt, f"PriorityClass {name} is already marked as default. Only one default can exist")

    def _resolve(self, attempt: AdmissionAttributes, spec: Json) -> None:
        found = self._find_class(attempt, spec)
        priority, policy = found.get("value", 0), found.get("preemptionPolicy")
        given = spec.get("priority")
        if given is not None and given != priority:
            refusal = f"the integer value of priority ({given}) must not be provided in pod spec"
            raise forbidden(attempt, f"{refusal}; {_COMPUTED.format(priority)}")
        spec["priority"] = priority
        if policy is None:
            return
        given = spec.get("preemptionPolicy")
        if given is not None and given != policy:
            refusal = f"the string value of PreemptionPolicy ({given}) must not be provided in pod spec"
            raise forbidden(attempt, f"{refusal}; {_COMPUTED.format(policy)}")
        spec["preemptionPolicy"] = policy

    def _find_class(self, attempt: AdmissionAttributes, spec: Json) -> Json:
        name = spec.get("priorityClassName")
        if name:
            stored = self._store.get(Key(_CLASSES, "", name))
            if stored is None:
                raise forbidden(attempt, f"no PriorityClass with name {name} was found")
            return stored.decode_body()
        default = self._default()
        if default is None:
            return _NO_CLASS
        spec["priorityClassName"] = default["metadata"]["name"]
        return default

    def _default(self) -> Json | None:
        """Return the default class; the lowest, if there are several."""
        defaults = [
            stored.decode_body()
            for stored in self._store.list(_CLASSES).items
            if _decoder.decode(stored.data).is_default
        ]
        return min(defaults, key=lambda body: body.get("value", 0), default=None)
