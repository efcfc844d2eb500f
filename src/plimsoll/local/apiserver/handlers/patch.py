"""PATCH in its four formats: JSON patch, merge patch, strategic merge patch and server-side apply."""

from __future__ import annotations

import re
from functools import partial
from typing import TYPE_CHECKING, Any, Final

import msgspec

from plimsoll.core.errors import UnreadableDocument
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.apply.conflicts import ApplyRefused
from plimsoll.local.apiserver.long_work import check_size
from plimsoll.local.apiserver.patches.json_patch import apply_json_patch
from plimsoll.local.apiserver.patches.json_values import get_go_kind
from plimsoll.local.apiserver.patches.merge_patch import apply_merge_patch
from plimsoll.local.apiserver.patches.patch_schema import PatchSchema
from plimsoll.local.apiserver.patches.results import PatchRefused
from plimsoll.local.apiserver.patches.strategic_merge import apply_strategic_merge_patch
from plimsoll.local.apiserver.registry.guaranteed_update import change_object, change_or_create_object
from plimsoll.local.apiserver.registry.identity import check_identity
from plimsoll.local.apiserver.request.bodies import MOST_STRICT_PROBLEMS, read_media_type, unknown_format
from plimsoll.local.apiserver.request.json import NotJson, Read, read_json
from plimsoll.local.apiserver.request.responses import build_object_response, negotiate_form
from plimsoll.local.apiserver.request.yaml import read_yaml
from plimsoll.local.apiserver.strategies.interface import Undecodable
from plimsoll.local.apiserver.strategies.lookup import find_strategy
from plimsoll.objects.schema import field_errors as fields
from plimsoll.objects.schema import go_text
from plimsoll.objects.schema.json_values import Refused, take_over

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.http_types import Response
    from plimsoll.local.apiserver.patches.results import Patched
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]

JSON_PATCH: Final = "application/json-patch+json"
MERGE_PATCH: Final = "application/merge-patch+json"
STRATEGIC_PATCH: Final = "application/strategic-merge-patch+json"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_ALL: Final = (JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, APPLY_PATCH)
_OF_CUSTOM: Final = (JSON_PATCH, MERGE_PATCH, APPLY_PATCH)
_decoder: Final = msgspec.json.Decoder()
_sorting_encoder: Final = msgspec.json.Encoder(order="sorted")


async def patch(server: Server, call: RequestContext) -> Response:
    negotiate_form(call)
    media = read_patch_media(call)
    if media == APPLY_PATCH:
        return await _apply(server, call)
    read = await server.long_work.run(call.work_bytes, partial(read_patch, call))
    noted: list[str] = []

    def apply_to(current: Json) -> Json:
        noted.clear()
        value, warnings = apply_patch_to(call, media, current, read)
        noted.extend(warnings)
        return value

    obj = await change_object(server, call, apply_to, subresource=call.subresource)
    call.warnings[:0] = noted
    return await build_object_response(server, call, obj)


def read_patch_media(call: RequestContext, *, is_of_custom: bool | None = None) -> str:
    """The format of the patch; `is_of_custom` overrides whether a custom object is patched."""
    media = read_media_type(call.request)
    if media not in _ALL:
        raise status_errors.failure(415, "UnsupportedMediaType", "415: Unsupported Media Type", details={})
    custom = call.resource.is_custom if is_of_custom is None else is_of_custom
    if custom and media not in _OF_CUSTOM:
        raise unknown_format(", ".join(_OF_CUSTOM))
    return media


def read_patch(call: RequestContext) -> Read:
    read = read_json(call.request.body)
    if isinstance(read, NotJson):
        raise status_errors.bad_request(f"error decoding patch: {read.problem}")
    return read


def apply_patch_to(call: RequestContext, media: str, current: Json, read: Read) -> tuple[Json, list[str]]:
    """The patched object, decoded, with its warnings; raises the errors of a patch that does not apply."""
    outcome = apply_patch(media, current, read.value)
    if isinstance(outcome, PatchRefused):
        raise build_patch_refusal(outcome)
    value = outcome.value

    def build_refusal(problem: str) -> status_errors.StatusError:
        # Of a strategic patch the patch is shown, else the patched object; either is long, so spelled only now.
        shown = go_text.format_plain(read.value) if media == STRATEGIC_PATCH else go_text.as_json(value)
        return _does_not_decode(shown, problem)

    if not isinstance(value, dict):
        raise build_refusal(f"json: cannot unmarshal {get_go_kind(value)}")
    # The real server decodes the text of the patched object, whose keys are sorted: problems come in that order. What
    # the patch did not touch has none.
    typed = {**value, "kind": call.resource.kind, "apiVersion": call.resource.api_version}
    value = {name: item if current.get(name) is item else _sort(item) for name, item in sorted(typed.items())}
    decoded = find_strategy(call.resource).decode_changed(value, current)
    if isinstance(decoded, Undecodable):
        problem = _format_converter_problem(decoded.problem) if media == STRATEGIC_PATCH else decoded.problem
        raise build_refusal(problem)
    duplicates = [f'duplicate field "{path}"' for path in read.duplicates]
    known = [*outcome.strict_problems, *duplicates]
    unknown = decoded.unknown_fields[: max(0, MOST_STRICT_PROBLEMS - len(known))]
    problems = [*known, *(f'unknown field "{path}"' for path in unknown)]
    if problems and call.field_validation == "Strict":
        raise build_refusal(f"strict decoding error: {', '.join(problems)}")
    return decoded.value, problems if call.field_validation == "Warn" else []


def _sort(value: Any) -> Any:
    return _decoder.decode(_sorting_encoder.encode(value)) if isinstance(value, (dict, list)) else value


_MISTYPED: Final = re.compile(r"json: cannot unmarshal (\w+) ?(\S*).* into Go .* of type (\S+)")
_INT64: Final = range(-(2**63), 2**63)
_GO_KINDS: Final = {"array": "slice", "object": "map", "number": "int64"}


def _format_converter_problem(problem: str) -> str:
    """A strategic patch is not decoded as text but converted, and the converter has words of its own."""
    found = _MISTYPED.fullmatch(problem)
    if found is None:
        return problem
    sent, wanted = _GO_KINDS.get(found[1], found[1]), found[3]
    if found[2].lstrip("-").isdigit() and int(found[2]) not in _INT64:
        sent = "float64"
    if wanted.startswith("[]"):
        return f"cannot restore slice from {sent}"
    if wanted.startswith("map["):
        return f"cannot restore map from {sent}"
    return f"cannot restore struct from: {sent}" if "." in wanted else f"cannot convert {sent} to {wanted}"


def apply_patch(media: str, current: Json, patch_value: Any) -> Patched | PatchRefused:
    if media == JSON_PATCH:
        return apply_json_patch(current, patch_value)
    if media == MERGE_PATCH:
        return apply_merge_patch(current, patch_value)
    # Built-in objects, and the Scale of any.
    schema = PatchSchema.from_kind(current["apiVersion"], current["kind"])
    assert schema is not None, "strategic patches of custom resources are refused before"
    return apply_strategic_merge_patch(current, patch_value, schema=schema)


def build_patch_refusal(outcome: PatchRefused) -> status_errors.StatusError:
    details: Json | None = {} if outcome.code == 422 else None
    return status_errors.failure(outcome.code, outcome.reason, outcome.message, details=details)


def _does_not_decode(shown: str, problem: str) -> status_errors.StatusError:
    """The 422 that prints the whole patched object."""
    error = fields.invalid("patch", shown, problem)
    return status_errors.invalid("", group="", kind="", errors=[error])


# ---- server-side apply


async def _apply(server: Server, call: RequestContext) -> Response:
    applied = await server.long_work.run(call.work_bytes, partial(read_applied, call))
    strategy = find_strategy(call.resource)
    force = is_forced(call)
    ownership = strategy.get_field_manager(call.subresource)

    def merge(current: Json | None) -> Json:
        _check_name(call, applied)
        outcome = ownership.apply(current, applied, manager=call.field_manager, force=force, now=server.clock.now())
        if isinstance(outcome, ApplyRefused):
            details = {"causes": list(outcome.causes)} if outcome.causes else None
            raise status_errors.failure(outcome.code, outcome.reason, outcome.message, details=details)
        decoded = strategy.decode(outcome.value)
        if isinstance(decoded, Undecodable):
            raise status_errors.unexpected(
                f"failed to convert merged object to last applied version: {decoded.problem}"
            )
        return decoded.value

    if call.subresource:
        obj = await change_object(server, call, merge, subresource=call.subresource, is_tracked=False)
        return await build_object_response(server, call, obj)

    def build_new() -> Json:
        return _build_new(call, applied, merge)

    obj, status = await change_or_create_object(server, call, merge, build_new, is_tracked=False)
    return await build_object_response(server, call, obj, status=status)


def is_forced(call: RequestContext) -> bool:
    return (call.request.get_parameter("force") or "").lower() in {"true", "1"}


def _build_new(call: RequestContext, applied: Any, merged: Callable[[Json | None], Json]) -> Json:
    value = merged(None)
    metadata = value["metadata"] = dict(value.get("metadata") or {})
    metadata.setdefault("name", call.name)
    check_identity(value, call)
    uid = applied.get("metadata", {}).get("uid")
    if uid:
        why = f"uid mismatch: the provided object specified uid {uid}, and no existing object was found"
        raise status_errors.conflict(call.name, group=call.resource.group, resource=call.resource.plural, why=why)
    return value


def _check_name(call: RequestContext, applied: Any) -> None:
    """The name must be that of the URL, if the configuration has one."""
    metadata = applied.get("metadata") if isinstance(applied, dict) else None
    name = metadata.get("name") if isinstance(metadata, dict) else None
    if isinstance(name, str) and name and name != call.name:
        raise status_errors.bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({call.name})"
        )


def read_applied(call: RequestContext) -> Any:
    try:
        value = read_yaml(call.request.body.decode(errors="replace")).value
    except UnreadableDocument as error:
        text = f"error decoding YAML: error converting YAML to JSON: yaml: {error.problem}"
        raise status_errors.bad_request(text) from error
    taken = take_over(value)
    if isinstance(taken, Refused):
        raise status_errors.bad_request(f"error decoding YAML: {taken.path}: {taken.problem}")
    if taken is None:
        return {}
    # The merged object contains all of the configuration.
    check_size(taken, call.work_bytes)
    return taken
