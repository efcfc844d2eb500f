"""Query parameters and option bodies of requests, read and validated as kube-apiserver does.

There is one function per kind of request. Messages about invalid numbers are Go's; contradicting options are a 422 that
names the kind of the options.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Literal

from plimsoll.core.values import Value
from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.apply.field_manager import choose_manager_name
from plimsoll.local.apiserver.http_types import Request
from plimsoll.local.apiserver.request.bodies import read_object
from plimsoll.objects.schema import field_errors as fields

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]
Validation = Literal["Strict", "Warn", "Ignore"]

_META: Final = "meta.k8s.io"
_INT64: Final = range(-(2**63), 2**63)
_MANAGER_BYTES: Final = 128
_VALIDATIONS: Final = ("", "Ignore", "Strict", "Warn")
_OPTIONS_KIND: Final = {"create": "CreateOptions", "update": "UpdateOptions", "patch": "PatchOptions"}
_PROPAGATIONS: Final = ("Foreground", "Background", "Orphan")


class WriteOptions(Value):
    """What create, update and patch share."""

    dry_run: bool = False
    field_manager: str = ""
    field_validation: Validation = "Warn"


def read_write_options(request: Request, verb: str, *, is_apply: bool = False) -> WriteOptions:
    """Read once for all requests that look alike: a controller has few ways to write, and writes a lot."""
    return _write_options(
        tuple(request.query), user_agent=request.get_header("user-agent"), verb=verb, is_apply=is_apply
    )


@lru_cache(maxsize=256)
def _write_options(query: tuple[tuple[str, str], ...], *, user_agent: str, verb: str, is_apply: bool) -> WriteOptions:
    request = Request("", "", query)
    manager = request.get_parameter("fieldManager") or ""
    dry_run = [value for name, value in request.query if name == "dryRun" and value]
    validation = request.get_parameter("fieldValidation") or ""
    errors: list[FieldError] = []
    if verb == "patch":
        errors += _validate_patch_options(request, manager, is_apply=is_apply)
    errors += _validate_manager(manager)
    errors += _validate_dry_run(dry_run)
    if validation not in _VALIDATIONS:
        errors.append(fields.not_supported("fieldValidation", validation, _VALIDATIONS))
    _refuse(_OPTIONS_KIND.get(verb, ""), errors)
    return WriteOptions(
        dry_run=bool(dry_run),
        field_manager=choose_manager_name(manager, user_agent) or "unknown",
        field_validation=_parse_validation(validation),
    )


def _parse_validation(text: str) -> Validation:
    return "Strict" if text == "Strict" else "Ignore" if text == "Ignore" else "Warn"


def _validate_patch_options(request: Request, manager: str, *, is_apply: bool) -> list[FieldError]:
    if is_apply:
        return [] if manager else [fields.required("fieldManager", "is required for apply patch")]
    if request.get_parameter("force") is not None:
        return [fields.forbidden("force", "may not be specified for non-apply patch")]
    return []


def _validate_manager(manager: str) -> list[FieldError]:
    if len(manager.encode(errors="replace")) > _MANAGER_BYTES:
        return [fields.too_long("fieldManager", _MANAGER_BYTES)]
    if not manager.isprintable():
        return [fields.invalid("fieldManager", manager, "should only contain printable characters")]
    return []


def _validate_dry_run(dry_run: Sequence[str]) -> list[FieldError]:
    return [] if set(dry_run) <= {"All"} else [fields.not_supported("dryRun", list(dry_run), ("All",))]


def _refuse(kind: str, errors: Sequence[FieldError]) -> None:
    if errors:
        raise status_errors.invalid("", group=_META, kind=kind, errors=errors)


# ---- deletion


class DeleteOptions(Value):
    """The options of a deletion. None and empty mean: not set."""

    grace_period_s: int | None = None
    propagation: str = ""
    orphan_dependents: bool | None = None
    uid: str = ""
    resource_version: str = ""
    dry_run: bool = False


def delete_options(request: Request) -> Json:
    """The DeleteOptions of a request, as an object: from the body, or else from the query."""
    if request.body.strip():
        return read_object(request, kind="DeleteOptions", api_version="v1").value
    options: Json = {}
    grace = request.get_parameter("gracePeriodSeconds")
    if grace is not None:
        options["gracePeriodSeconds"] = parse_integer(grace)
    policy = request.get_parameter("propagationPolicy")
    if policy is not None:
        options["propagationPolicy"] = policy
    orphan = request.get_parameter("orphanDependents")
    if orphan is not None:
        options["orphanDependents"] = orphan.lower() not in {"false", "0"}
    dry_run = [value for name, value in request.query if name == "dryRun" and value]
    if dry_run:
        options["dryRun"] = dry_run
    return options


def read_delete_options(options: Json, *, dry_run: bool = False) -> DeleteOptions:
    """The validated options; `dry_run` is that of the request."""
    policy = options.get("propagationPolicy")
    orphan = options.get("orphanDependents")
    dry_run_values = options.get("dryRun") or []
    errors: list[FieldError] = []
    if policy is not None and orphan is not None:
        errors.append(
            fields.invalid("propagationPolicy", policy, "orphanDependents and deletionPropagation cannot be both set")
        )
    if policy is not None and policy not in _PROPAGATIONS:
        errors.append(fields.not_supported("propagationPolicy", policy, (*_PROPAGATIONS, "nil")))
    if not isinstance(dry_run_values, list):
        raise status_errors.bad_request(
            "json: cannot unmarshal into Go struct field DeleteOptions.dryRun of type []string"
        )
    errors += _validate_dry_run([str(item) for item in dry_run_values])
    _refuse("DeleteOptions", errors)
    conditions = options.get("preconditions")
    conditions = conditions if isinstance(conditions, dict) else {}
    grace = options.get("gracePeriodSeconds")
    return DeleteOptions(
        grace_period_s=grace if isinstance(grace, int) and not isinstance(grace, bool) else None,
        propagation=policy or "",
        orphan_dependents=orphan if isinstance(orphan, bool) else None,
        uid=str(conditions.get("uid") or ""),
        resource_version=str(conditions.get("resourceVersion") or ""),
        dry_run=dry_run or bool(dry_run_values),
    )


# ---- reading


class ListOptions(Value):
    """The options of lists and watches."""

    limit: int = 0
    continue_: str = ""
    resource_version: str = ""
    match: str = ""
    label_selector: str = ""
    field_selector: str = ""
    timeout_s: int | None = None
    bookmarks: bool = False
    send_initial_events: bool | None = None


def read_list_options(request: Request, *, watch: bool) -> ListOptions:
    timeout = request.get_parameter("timeoutSeconds")
    initial = request.get_parameter("sendInitialEvents")
    options = ListOptions(
        limit=parse_integer(request.get_parameter("limit") or "0"),
        continue_=request.get_parameter("continue") or "",
        resource_version=request.get_parameter("resourceVersion") or "",
        match=request.get_parameter("resourceVersionMatch") or "",
        label_selector=request.get_parameter("labelSelector") or "",
        field_selector=request.get_parameter("fieldSelector") or "",
        timeout_s=parse_integer(timeout) if timeout else None,
        bookmarks=_is_true(request.get_parameter("allowWatchBookmarks")),
        send_initial_events=None if initial is None else _is_true(initial),
    )
    _refuse("ListOptions", _validate_watch_options(options) if watch else _validate_list_options(options))
    return options


def _is_true(text: str | None) -> bool:
    return text is not None and text.lower() not in {"false", "0"}


def _validate_list_options(options: ListOptions) -> list[FieldError]:
    errors = _validate_version_match(options)
    if options.send_initial_events is not None:
        errors.append(fields.forbidden("sendInitialEvents", "sendInitialEvents is forbidden for list"))
    return errors


def _validate_version_match(options: ListOptions) -> list[FieldError]:
    match, path = options.match, "resourceVersionMatch"
    if not match:
        return []
    errors: list[FieldError] = []
    if options.continue_:
        errors.append(fields.forbidden(path, "resourceVersionMatch is forbidden when continue is provided"))
    if not options.resource_version:
        errors.append(fields.forbidden(path, "resourceVersionMatch is forbidden unless resourceVersion is provided"))
    if match not in {"Exact", "NotOlderThan"}:
        errors.append(fields.not_supported(path, match, ("Exact", "NotOlderThan", "")))
    if match == "Exact" and options.resource_version == "0":
        errors.append(fields.forbidden(path, 'resourceVersionMatch "exact" is forbidden for resourceVersion "0"'))
    return errors


def _validate_watch_options(options: ListOptions) -> list[FieldError]:
    match, path = options.match, "resourceVersionMatch"
    if options.send_initial_events is None:
        message = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is provided"
        return [fields.forbidden(path, message)] if match else []
    errors: list[FieldError] = []
    if match != "NotOlderThan":
        errors.append(fields.forbidden(path, "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan"))
    if match and match != "NotOlderThan":
        errors.append(fields.not_supported(path, match, ("NotOlderThan",)))
    return errors


def parse_integer(text: str) -> int:
    """A number of the query; raises the 400 with Go's complaint."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    if not (digits.isascii() and digits.isdigit()):
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": invalid syntax')
    if len(digits) > 19 or int(text) not in _INT64:
        raise status_errors.bad_request(f'strconv.ParseInt: parsing "{text}": value out of range')
    return int(text)


def parse_revision(text: str) -> int | str:
    """A resourceVersion as a number, or Go's complaint about it."""
    if not (text.isascii() and text.isdigit()):
        return f'strconv.ParseUint: parsing "{text}": invalid syntax'
    if len(text) > 20 or int(text) >= 2**64:
        return f'strconv.ParseUint: parsing "{text}": value out of range'
    return int(text)
