"""What the server serves: the built-in API groups each controller speaks, and the custom resources it works with.

Built-in groups are read from discovery, which every user may read. Custom resources are read from their definitions,
which say why one is not served; without permission for those, discovery is used.
"""

from __future__ import annotations

from importlib.resources import files
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.errors import PlimsollError
from plimsoll.core.values import Value
from plimsoll.kube.diagnosis.findings import Finding, Level
from plimsoll.kube.diagnosis.parallel_requests import request_all
from plimsoll.kube.discovery import fetch_resources
from plimsoll.kube.errors import ApiError, NotFound, UnreadableAnswer
from plimsoll.kube.requests.paging import PartialObjectMetadata
from plimsoll.objects.api.apiextensions import CustomResourceDefinition
from plimsoll.objects.api.resource import Resource

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.kube.client import Client
    from plimsoll.kube.diagnosis.requirements import CustomResource, Requirements

BUILTIN_VERSION: Final = "v1"

Served = frozenset[str]
"""Names of resources and subresources in one version of a group; empty if the version is not served."""


async def list_served_groups(client: Client, groups: Iterable[str]) -> dict[str, Served | PlimsollError]:
    """What version v1 of each group holds."""
    distinct = tuple(dict.fromkeys(groups))
    answers = await request_all(distinct, lambda group: _fetch_resources(client, group, BUILTIN_VERSION))
    return dict(zip(distinct, answers, strict=True))


async def _fetch_resources(client: Client, group: str, version: str) -> Served:
    api_version = f"{group}/{version}" if group else version
    return frozenset(resource.name for resource in await fetch_resources(client, api_version))


def check_groups(requirements: Requirements, served: Mapping[str, Served | PlimsollError]) -> Finding:
    """Whether the server has the built-in resources a controller uses."""
    check = f"apis.{requirements.controller}"
    groups = requirements.builtin_groups
    for group in groups:
        answer = served[group]
        if isinstance(answer, PlimsollError):
            message = f"the server does not report which APIs it serves: {answer}"
            return Finding(check=check, level=Level.UNKNOWN, message=message)
    lacking = sorted(
        {
            f"{permission.path} ({_format_api_version(permission.group)})"
            for permission in requirements.permissions
            if permission.group in groups and permission.path not in _filter_names(served[permission.group])
        }
    )
    details = {"apiVersions": [_format_api_version(group) for group in groups], "missing": lacking}
    if not lacking:
        message = f"all {len(groups)} API versions it uses are served"
        return Finding(check=check, level=Level.OK, message=message, details=details)
    return Finding(
        check=check,
        level=Level.FAIL,
        message=f"not served: {', '.join(lacking)}",
        fix="switch these APIs on (--runtime-config of the API server), or upgrade Kubernetes",
        details=details,
    )


def _filter_names(served: Served | PlimsollError) -> Served:
    return frozenset() if isinstance(served, PlimsollError) else served


def _format_api_version(group: str) -> str:
    return f"{group}/{BUILTIN_VERSION}" if group else BUILTIN_VERSION


# ---- custom resources


class DefinitionState(Value):
    """What is known about one definition. `problem` is empty if it can be used."""

    definition: CustomResource
    versions: tuple[str, ...] = ()
    problem: str = ""
    is_known: bool = True
    """Whether we could look at all."""


async def read_definitions(client: Client, definitions: Iterable[CustomResource]) -> dict[str, DefinitionState]:
    """Each definition by its name."""
    distinct = {definition.name: definition for definition in definitions}
    answers = await request_all(distinct.values(), lambda definition: _read_definition(client, definition))
    return {
        definition.name: DefinitionState(definition=definition, is_known=False, problem=str(answer))
        if isinstance(answer, PlimsollError)
        else answer
        for definition, answer in zip(distinct.values(), answers, strict=True)
    }


async def _read_definition(client: Client, definition: CustomResource) -> DefinitionState:
    try:
        found = await client.get(CustomResourceDefinition, definition.name)
    except NotFound:
        return DefinitionState(definition=definition, problem="missing")
    except ApiError:
        return await _probe_definition(client, definition)
    versions = tuple(version.name for version in found.spec.versions if version.served)
    conditions = {condition.type: condition for condition in found.status.conditions}
    refused = conditions.get("NamesAccepted")
    established = conditions.get("Established")
    if refused is not None and refused.status == "False":
        return DefinitionState(definition=definition, versions=versions, problem=f"its names clash ({refused.message})")
    if established is None or established.status != "True":
        return DefinitionState(definition=definition, versions=versions, problem="not established yet")
    return _judge_definition(definition, versions)


async def _probe_definition(client: Client, definition: CustomResource) -> DefinitionState:
    served = [
        version
        for version in definition.versions
        if definition.plural in await _fetch_resources(client, definition.group, version)
    ]
    if not served:
        return DefinitionState(definition=definition, problem="missing, or in no supported version")
    return _judge_definition(definition, tuple(served))


def _judge_definition(definition: CustomResource, versions: tuple[str, ...]) -> DefinitionState:
    if set(versions) & set(definition.versions):
        return DefinitionState(definition=definition, versions=versions)
    wanted = " or ".join(definition.versions)
    problem = f"served in {', '.join(versions) or 'no version'}, not in {wanted}"
    return DefinitionState(definition=definition, versions=versions, problem=problem)


async def list_used_namespaces(
    client: Client, requirements: Requirements, seen: Mapping[str, DefinitionState]
) -> tuple[str, ...]:
    """The namespaces that hold what the controller looks after; none if it has no such objects, or we may not see them.

    If the controller says which objects need Secrets, only those count. A user that may not list them lacks a
    permission anyway; the rest is checked once that is granted.
    """
    find = requirements.find_secret_namespaces
    found: set[str] = set()
    for subject in requirements.custom_resources[: 1 if find is None else None]:
        served = seen[subject.name].versions
        version = next((preferred for preferred in subject.versions if preferred in served), "")
        if not version:
            continue
        try:
            if find is None:
                found |= await _list_namespaces(client, subject, version)
            else:
                listed = await client.get_json(f"/apis/{subject.group}/{version}/{subject.plural}")
                items = listed.get("items") if isinstance(listed, dict) else None
                found.update(name for item in items or () if isinstance(item, dict) for name in find(item))
        except (ApiError, UnreadableAnswer):
            continue
    return tuple(sorted(found - {""}))


async def _list_namespaces(client: Client, subject: CustomResource, version: str) -> set[str]:
    resource = Resource(
        group=subject.group,
        version=version,
        kind="",
        plural=subject.plural,
        singular="",
        namespaced=True,
        struct=PartialObjectMetadata,
    )
    found: set[str] = set()
    async for page in client.iterate_metadata_pages(resource):
        found.update(metadata.metadata.namespace for metadata in page.items)
    return found


def check_definitions(
    requirements: Requirements, seen: Mapping[str, DefinitionState], *, is_selected: bool
) -> Finding | None:
    """Whether the custom resources of a controller are there; nothing to say if it has none.

    If this controller was not selected, a missing definition only means that it cannot run here: a warning.
    """
    if not requirements.custom_resources:
        return None
    found = [seen[definition.name] for definition in requirements.custom_resources]
    details = {"definitions": [_build_details(state) for state in found]}
    check = f"definitions.{requirements.controller}"
    hidden = [state for state in found if not state.is_known]
    lacking = [state for state in found if state.problem and state.is_known and not state.definition.is_optional]
    if lacking:
        return Finding(
            check=check,
            level=Level.FAIL if is_selected else Level.WARN,
            message=_format_by_problem(lacking),
            fix="\n".join(dict.fromkeys(_format_advice(state.definition) for state in lacking)),
            details=details,
        )
    if hidden:
        message = f"could not be checked: {hidden[0].problem}"
        return Finding(check=check, level=Level.UNKNOWN, message=message, details=details)
    unused = [state.definition.name for state in found if state.problem]
    message = f"{len(found) - len(unused)} custom resources exist"
    if unused:
        message += f"; missing, but optional: {', '.join(unused)}"
    return Finding(check=check, level=Level.OK, message=message, details=details)


def _format_by_problem(lacking: list[DefinitionState]) -> str:
    names: dict[str, list[str]] = {}
    for state in lacking:
        names.setdefault(state.problem, []).append(state.definition.name)
    return "; ".join(f"{problem}: {', '.join(names)}" for problem, names in names.items())


def _build_details(state: DefinitionState) -> dict[str, Any]:
    return {
        "name": state.definition.name,
        "versions": list(state.versions),
        "wanted": list(state.definition.versions),
        "optional": state.definition.is_optional,
        "problem": state.problem,
    }


def _format_advice(definition: CustomResource) -> str:
    shipped = files("plimsoll.objects").joinpath("crds", f"{definition.plural}.yaml")
    if definition.is_ours and shipped.is_file():
        return f"kubectl apply -f {shipped}"
    return f"install {definition.source}, which provides {definition.group}"
