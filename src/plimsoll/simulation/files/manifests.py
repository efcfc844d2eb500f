"""Manifests inside a scenario file: whether they say what they are, and whether every field is of its type.

Types are judged here, all mistakes at once and before anything runs, and those of status and creationTimestamp only
here: a server overwrites them, so they go past it into the world (`seeding`). Whether an object is valid beyond that,
the API server says. Dumps that `plimsoll plan` reads are not judged: there one odd object must not hide the others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.core.quantity import Quantity
from plimsoll.objects.api.provisioning_requests import use_shipped_names
from plimsoll.objects.builtin.decoding.decode import decode
from plimsoll.objects.builtin.decoding.openapi import find_schema_name
from plimsoll.objects.schema.json_values import Refused, take_over
from plimsoll.simulation.document import describe_value, join_path

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from plimsoll.simulation.document import DocumentValue
    from plimsoll.simulation.scenario import Json

_POD: Final = "io.k8s.api.core.v1.Pod"
_METADATA: Final = "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"
_PHASES: Final = ("Pending", "Running", "Succeeded", "Failed", "Unknown")
_CONDITION_STATUSES: Final = ("True", "False", "Unknown")


def read_manifest(given: DocumentValue) -> Json:
    """One object with a name."""
    found = given.read_members()
    for field in ("apiVersion", "kind"):
        if field not in found:
            given.add_problem(f"{field} is missing")
        else:
            found[field].read_text()
    metadata = found["metadata"].read_members() if "metadata" in found else {}
    if "name" not in metadata:
        given.add_problem("metadata.name is missing")
    else:
        metadata["name"].read_text()
    if "namespace" in metadata and metadata["namespace"].value is not None:
        metadata["namespace"].read_text()
    body: Json = given.value if isinstance(given.value, dict) else {}
    return body


def read_checked_manifest(given: DocumentValue) -> Json:
    """The same, every field of its type and called as it is today; a status as a server would hold it."""
    body = use_shipped_names(read_manifest(given))
    metadata, api_version, kind = (body.get(name) for name in ("metadata", "apiVersion", "kind"))
    if not (isinstance(metadata, dict) and isinstance(api_version, str) and isinstance(kind, str)):
        return body
    component = find_schema_name(api_version, kind)
    if component is None:
        _decode(given.get_member("metadata", metadata), metadata, _METADATA)
        return body
    whole = _decode(given, {**body, "metadata": _without_names(metadata)}, component)
    if not isinstance(body.get("status"), dict):
        return body
    status = whole.get("status") or {}
    for path, problem in _STATUS_CHECKS[kind](status) if kind in _STATUS_CHECKS else ():
        given.get_place(path).add_problem(problem)
    return {**body, "status": status}


def judge_template(given: DocumentValue, template: Json) -> None:
    """Metadata and spec of pods, at a place."""
    _decode(given, template, _POD)


def read_manifests(given: DocumentValue) -> tuple[Json, ...]:
    """One object, several in a list, or a `kind: List`."""
    if isinstance(given.value, list):
        return tuple(read_checked_manifest(item) for item in given.read_items())
    if isinstance(given.value, dict) and given.value.get("kind") == "List" and "items" in given.value:
        return tuple(read_checked_manifest(member) for member in given.read_members()["items"].read_items())
    return (read_checked_manifest(given),)


def _decode(given: DocumentValue, value: Json, component: str) -> Json:
    """The value as Go would hold it; values that Go would refuse are reported."""
    taken = take_over(value)
    if isinstance(taken, Refused):
        given.get_place(taken.path).add_problem(taken.problem)
        return {}
    decoded = decode(taken, component)
    for problem in decoded.problems:
        given.get_place(problem.path).add_problem(problem.text)
    for unknown in decoded.unknown_fields:
        given.get_place(unknown).add_problem("unknown field")
    return decoded.value


def _without_names(metadata: Json) -> Json:
    """Names of a wrong type have been reported already."""
    return {key: value for key, value in metadata.items() if key not in ("name", "namespace")}


# ---- what a server would not store


def _find_pod_status_problems(status: Json) -> Iterator[tuple[str, str]]:
    phase = status.get("phase")
    if phase and phase not in _PHASES:
        yield "status.phase", f"must be one of {', '.join(_PHASES)}, is {describe_value(phase)}"
    yield from _find_condition_problems(status)


def _find_node_status_problems(status: Json) -> Iterator[tuple[str, str]]:
    for part in ("capacity", "allocatable"):
        for name, amount in (status.get(part) or {}).items():
            if Quantity.parse(amount).nano < 0:
                yield join_path(f"status.{part}", name), f"must be at least 0, is {amount}"
    yield from _find_condition_problems(status)


def _find_condition_problems(status: Json) -> Iterator[tuple[str, str]]:
    for index, condition in enumerate(status.get("conditions") or ()):
        if not condition.get("type"):
            yield f"status.conditions[{index}]", "type is missing"
        if condition.get("status") not in _CONDITION_STATUSES:
            message = f"must be one of {', '.join(_CONDITION_STATUSES)}, is {describe_value(condition.get('status'))}"
            yield f"status.conditions[{index}].status", message


_STATUS_CHECKS: Final[dict[str, Callable[[Json], Iterator[tuple[str, str]]]]] = {
    "Pod": _find_pod_status_problems,
    "Node": _find_node_status_problems,
}
