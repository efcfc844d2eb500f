"""Kind and apiVersion of a request body, checked against the URL, and the 400s about them.

A built-in body may leave them out; a custom resource may not.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.request.bodies import (
    MOST_STRICT_PROBLEMS,
    Body,
    build_unrecognised_kind_error,
    read_object,
)
from plimsoll.local.apiserver.strategies.interface import Undecodable
from plimsoll.local.apiserver.strategies.lookup import find_strategy
from plimsoll.objects.builtin.decoding import openapi

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.apiserver.request.context import RequestContext

Json = dict[str, Any]

_SCHEME: Final = "pkg/api/legacyscheme/scheme.go:30"
# Versions that a real server still knows but serves no more.
_RETIRED: Final = {
    "apps/v1beta1": frozenset({"Deployment", "StatefulSet", "ControllerRevision"}),
    "apps/v1beta2": frozenset({"Deployment", "StatefulSet", "ControllerRevision", "DaemonSet", "ReplicaSet"}),
    "batch/v1beta1": frozenset({"CronJob"}),
    "extensions/v1beta1": frozenset({"Deployment", "DaemonSet", "ReplicaSet", "NetworkPolicy"}),
    "policy/v1beta1": frozenset({"PodDisruptionBudget", "Eviction"}),
    "rbac.authorization.k8s.io/v1beta1": frozenset({"Role", "RoleBinding", "ClusterRole", "ClusterRoleBinding"}),
    "storage.k8s.io/v1beta1": frozenset({"StorageClass", "CSINode", "CSIDriver", "VolumeAttachment"}),
    "coordination.k8s.io/v1beta1": frozenset({"Lease"}),
    "events.k8s.io/v1beta1": frozenset({"Event"}),
    "discovery.k8s.io/v1beta1": frozenset({"EndpointSlice"}),
    "scheduling.k8s.io/v1beta1": frozenset({"PriorityClass"}),
}


def decode_object(call: RequestContext) -> Json:
    """The body of a create or update, decoded and defaulted; unknown fields are dealt with as asked for."""
    resource = call.resource
    body = read_object(call.request, kind=resource.kind, api_version=resource.api_version)
    value = _add_type(call, body.value)
    decoded = find_strategy(resource).decode(value)
    if isinstance(decoded, Undecodable):
        raise _cannot_be_handled(value, resource.kind, decoded.problem)
    _report(call, body, decoded.unknown_fields)
    return decoded.value


def _add_type(call: RequestContext, value: Json) -> Json:
    resource = call.resource
    api_version, kind = value.get("apiVersion") or "", value.get("kind") or ""
    if resource.is_custom:
        if not kind:
            raise build_unrecognised_kind_error(call.request, kind=resource.kind)
        if api_version != resource.api_version:
            raise _other_version(api_version, resource.api_version)
        return value
    api_version, kind = api_version or resource.api_version, kind or resource.kind
    typed = {**value, "apiVersion": api_version, "kind": kind}
    if (api_version, kind) == (resource.api_version, resource.kind):
        return typed
    if not _is_registered(api_version, kind):
        problem = f'no kind "{kind}" is registered for version "{api_version}" in scheme "{_SCHEME}"'
        raise _cannot_be_handled(typed, resource.kind, problem)
    if kind != resource.kind:
        version, group = resource.version, resource.group.partition(".")[0] or "core"
        problem = f"converting ({version}.{kind}) to ({group}.{resource.kind}): unknown conversion"
        raise _cannot_be_handled(typed, resource.kind, problem)
    raise _other_version(api_version, resource.api_version)


def _is_registered(api_version: str, kind: str) -> bool:
    bare = kind.removesuffix("List")
    return kind in _RETIRED.get(api_version, ()) or any(openapi.is_known(api_version, item) for item in (kind, bare))


def _other_version(sent: str, expected: str) -> status_errors.StatusError:
    text = f"the API version in the data ({sent}) does not match the expected API version ({expected})"
    return status_errors.bad_request(text)


def _cannot_be_handled(value: Json, expected: str, problem: str) -> status_errors.StatusError:
    version = (value.get("apiVersion") or "").rpartition("/")[2]
    return status_errors.bad_request(
        f'{value.get("kind")} in version "{version}" cannot be handled as a {expected}: {problem}'
    )


def _report(call: RequestContext, body: Body, unknown: Sequence[str]) -> None:
    """Warnings, or the error that strict validation requires."""
    if call.field_validation == "Ignore":
        return
    room = max(0, MOST_STRICT_PROBLEMS - len(body.strict_problems))
    unknown_problems = [f'unknown field "{path}"' for path in unknown[:room]]
    if call.field_validation == "Warn":
        call.warnings.extend((*body.strict_problems, *unknown_problems))
        return
    duplicates = [body.strict_error] if body.strict_error else list(body.strict_problems)
    problems = [*duplicates, *unknown_problems]
    if problems:
        value = {"kind": call.resource.kind, **body.value, "apiVersion": call.resource.api_version}
        problem = f"strict decoding error: {', '.join(problems)}"
        raise _cannot_be_handled(value, call.resource.kind, problem)
