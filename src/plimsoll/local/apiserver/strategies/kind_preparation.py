"""Preparation of single kinds at creation and update, as their strategies in Kubernetes do it.

Every function modifies the object it receives. The tables at the end select them by kind.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.strategies import events
from plimsoll.objects.schema.json_values import copy, is_same

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

HAVE_LATER_DEFAULTS: Final = frozenset({"Namespace", "Service"})
_TEMPLATE_GENERATION: Final = "deprecated.daemonset.template.generation"


def keep(new: Json, old: Json, field: str) -> None:
    """The field is as it was, whatever was sent."""
    if field in old:
        new[field] = old[field]
    else:
        new.pop(field, None)


@contextmanager
def undo_later_defaults(obj: Json, kind: str) -> Iterator[None]:
    """Some defaults are the kind's own work on create, after ownership is settled: what fills them in before is undone.

    Around the filling in of defaults, which changes the object in place.
    """
    sent = {name: copy(item) for name, item in obj.items() if name in {"spec", "status"}}
    yield
    if kind == "Namespace":
        for name in ("spec", "status"):
            keep(obj, sent, name)
    elif kind == "Service" and "clusterIPs" not in sent.get("spec", {}):
        obj["spec"].pop("clusterIPs", None)


def prepare_for_tracking(obj: Json, kind: str) -> None:
    """What kube-apiserver has already set, or not yet, when it computes managedFields."""
    if kind == "DaemonSet":
        obj.setdefault("metadata", {}).setdefault("annotations", {}).setdefault(_TEMPLATE_GENERATION, "0")
    elif kind == "Event":
        for name in ("reportingComponent", "reportingInstance"):
            if not obj.get(name):
                obj.pop(name, None)


def on_create(obj: Json, kind: str) -> None:
    prepare = _ON_CREATE.get(kind)
    if prepare is not None:
        prepare(obj)


def on_update(new: Json, old: Json, kind: str) -> None:
    prepare = _ON_UPDATE.get(kind)
    if prepare is not None:
        prepare(new, old)


def build_status_update(kind: str, new: Json, old: Json) -> Json:
    """Through the status subresource only the status changes, and the metadata that the kind allows."""
    updated = {**old, "metadata": dict(new["metadata"])}
    keep(updated, new, "status")
    if kind == "CustomResourceDefinition":
        managed = new["metadata"].get("managedFields")
        updated["metadata"] = {**old["metadata"], **({"managedFields": managed} if managed else {})}
    elif kind == "Deployment":
        keep(updated["metadata"], old["metadata"], "labels")
    elif kind == "Pod":
        keep(updated["metadata"], old["metadata"], "ownerReferences")
        updated["status"] = dict(updated.get("status") or {})
        keep(updated["status"], old.get("status") or {}, "qosClass")
    return updated


def find_further_errors(obj: Json, api_version: str, kind: str) -> list[FieldError]:
    """What `objects.builtin` does not ask."""
    return events.validate_event(obj, api_version) if kind == "Event" else []


def _prepare_job(obj: Json) -> None:
    """A job selects its pods by its own uid, unless it has a manual selector."""
    spec = obj["spec"]
    template = spec.setdefault("template", {}).setdefault("metadata", {})
    uid, name = obj["metadata"].get("uid", ""), obj["metadata"].get("name", "")
    # Labels a job takes over from its template are one map with them in the real server: what is added to one is in
    # both. Only their equality shows whether they were taken over.
    are_shared = (obj["metadata"].get("labels") or {}) == (template.get("labels") or {})
    if not spec.get("manualSelector"):
        labels = template.setdefault("labels", {})
        for prefix in ("batch.kubernetes.io/", ""):
            labels.setdefault(f"{prefix}controller-uid", uid)
            labels.setdefault(f"{prefix}job-name", name)
        template["labels"] = dict(sorted(labels.items()))
        selector = spec.setdefault("selector", {}).setdefault("matchLabels", {})
        selector.setdefault("batch.kubernetes.io/controller-uid", uid)
    if are_shared and template.get("labels"):
        obj["metadata"]["labels"] = dict(template["labels"])


def _prepare_daemon_set(obj: Json) -> None:
    obj["metadata"].setdefault("annotations", {})[_TEMPLATE_GENERATION] = "1"


def _prepare_daemon_set_update(new: Json, old: Json) -> None:
    before = old["metadata"].get("annotations", {}).get(_TEMPLATE_GENERATION, "1")
    changed = not is_same(new["spec"].get("template"), old["spec"].get("template"))
    after = str(int(before) + 1) if changed and before.isdigit() else before
    new["metadata"] = {
        **new["metadata"],
        "annotations": {**new["metadata"].get("annotations", {}), _TEMPLATE_GENERATION: after},
    }


def _prepare_namespace_update(new: Json, old: Json) -> None:
    """Finalizers are the business of the finalize subresource."""
    keep(new, old, "spec")


def _prepare_volume(obj: Json) -> None:
    obj["status"].setdefault("lastPhaseTransitionTime", obj["metadata"]["creationTimestamp"])


def _prepare_pod(obj: Json) -> None:
    """A pod with scheduling gates has a condition about them."""
    if obj["spec"].get("schedulingGates"):
        obj["status"]["conditions"] = [
            {
                "type": "PodScheduled",
                "status": "False",
                "lastProbeTime": None,
                "lastTransitionTime": obj["metadata"]["creationTimestamp"],
                "reason": "SchedulingGated",
                "message": "Scheduling is blocked due to non-empty scheduling gates",
            }
        ]


def _prepare_secret_update(new: Json, old: Json) -> None:
    # The type cannot be left out by an update.
    if not new.get("type"):
        keep(new, old, "type")


_ON_CREATE: Final[dict[str, Callable[[Json], None]]] = {
    "DaemonSet": _prepare_daemon_set,
    "Job": _prepare_job,
    "PersistentVolume": _prepare_volume,
    "Pod": _prepare_pod,
}
_ON_UPDATE: Final[dict[str, Callable[[Json, Json], None]]] = {
    "DaemonSet": _prepare_daemon_set_update,
    "Namespace": _prepare_namespace_update,
    "Secret": _prepare_secret_update,
}
