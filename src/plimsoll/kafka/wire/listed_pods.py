"""The pods that a StrimziPodSet lists, read with the path of every wrong entry. Pure.

A pod set lists whole pods as plain JSON. What cannot be read of it says nothing about the pods that exist: while there
is a problem, no pod counts as missing from the list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import InvalidSelector
from plimsoll.core.names import find_subdomain_problems
from plimsoll.core.plans import Reason
from plimsoll.core.selectors import LabelSelector
from plimsoll.core.values import Value
from plimsoll.kafka.wire.names import REVISION_ANNOTATION
from plimsoll.scheduling.selectors import parse_label_selector

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.objects.api.kafka import StrimziPodSet

INVALID_POD_SET: Final = "InvalidResourceException"
"""Strimzi's reason for a resource that cannot be used as it is written."""
_MOST_NAMED: Final = 5


class ListedPod(Value):
    """An entry of `spec.pods` that can be used. `body` is the entry as it is written."""

    name: str
    body: dict[str, Any]

    @property
    def revision(self) -> str:
        return read_revision(_get_map(_get_map(self.body, "metadata"), "annotations"))

    @property
    def labels(self) -> dict[str, str]:
        return _get_map(_get_map(self.body, "metadata"), "labels")


class ListedPods(Value):
    """The usable entries by name, in their order, and the problems of the others."""

    pods: dict[str, ListedPod] = {}
    problems: tuple[Reason, ...] = ()
    """Not empty: nothing follows from a pod's absence in `pods`."""


def read_revision(annotations: Mapping[str, Any]) -> str:
    return str(annotations.get(REVISION_ANNOTATION, ""))


def read_selector(pod_set: StrimziPodSet) -> LabelSelector | Reason:
    """The selector, or why it cannot be used: an empty one would match every pod of the namespace."""
    path = "spec.selector"
    try:
        selector = parse_label_selector(pod_set.spec.selector, path=path)
    except InvalidSelector as error:
        return _build_problem(path, str(error))
    if selector.is_empty or selector.selects_nothing:
        return _build_problem(path, "must have at least one label")
    return selector


def read_listed_pods(pod_set: StrimziPodSet, *, lists_pods: bool = True) -> ListedPods:
    """The pods that the set lists. `lists_pods`: `spec.pods` is written at all."""
    selector = read_selector(pod_set)
    problems = [selector] if isinstance(selector, Reason) else []
    if not lists_pods:
        problems.append(_build_problem("spec.pods", "is missing"))
    pods: dict[str, ListedPod] = {}
    for index, entry in enumerate(pod_set.spec.pods):
        path = f"spec.pods[{index}]"
        read = _read_entry(entry, path, namespace=pod_set.metadata.namespace)
        if isinstance(read, Reason):
            problems.append(read)
        elif read.name in pods:
            problems.append(_build_problem(f"{path}.metadata.name", f"{read.name} is listed twice"))
        elif isinstance(selector, LabelSelector) and not selector.matches(read.labels):
            problems.append(_build_problem(f"{path}.metadata.labels", "do not match spec.selector"))
        else:
            pods[read.name] = read
    return ListedPods(pods=pods, problems=tuple(problems))


def describe_problems(problems: tuple[Reason, ...]) -> str:
    """All problems in one sentence, the first few in full."""
    named = "; ".join(problem.message for problem in problems[:_MOST_NAMED])
    rest = len(problems) - _MOST_NAMED
    return f"{named}; and {rest} more" if rest > 0 else named


def _read_entry(entry: Any, path: str, *, namespace: str) -> ListedPod | Reason:
    if not isinstance(entry, dict):
        return _build_problem(path, "must be a pod")
    metadata = entry.get("metadata")
    if not isinstance(metadata, dict):
        return _build_problem(f"{path}.metadata", "must be an object")
    name = metadata.get("name")
    if not isinstance(name, str) or find_subdomain_problems(name):
        return _build_problem(f"{path}.metadata.name", "must be the name of a pod")
    if metadata.get("namespace") not in (None, "", namespace):
        return _build_problem(f"{path}.metadata.namespace", f"must be {namespace}, the pod set's")
    for field in ("labels", "annotations"):
        written = metadata.get(field)
        if written is not None and not _is_text_map(written):
            return _build_problem(f"{path}.metadata.{field}", "must be a map of strings")
    if not isinstance(entry.get("spec"), dict):
        return _build_problem(f"{path}.spec", "must be an object")
    return ListedPod(name=name, body=entry)


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _get_map(whole: Mapping[str, Any], key: str) -> dict[str, Any]:
    value = whole.get(key)
    return value if isinstance(value, dict) else {}


def _build_problem(path: str, problem: str) -> Reason:
    return Reason(code=INVALID_POD_SET, message=f"{path}: {problem}", facts={"field": path})
