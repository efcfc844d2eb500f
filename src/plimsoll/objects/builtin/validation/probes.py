"""Validation of probes and lifecycle hooks: exactly one handler, with what it needs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.builtin.validation.syntax import find_http_header_problems, find_port_problems
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_NUMBERS: Final = ("initialDelaySeconds", "timeoutSeconds", "periodSeconds", "successThreshold", "failureThreshold")
_NOT_NEGATIVE: Final = "must be greater than or equal to 0"


def validate_container_probes(container: Json, path: str, *, grace_period_s: int | None) -> list[FieldError]:
    errors: list[FieldError] = []
    for hook in ("postStart", "preStop"):
        if hook in container.get("lifecycle", {}):
            here = f"{path}.lifecycle.{hook}"
            errors += _validate_handler(container["lifecycle"][hook], here, grace_period_s=grace_period_s)
    for name in ("livenessProbe", "readinessProbe", "startupProbe"):
        if name in container:
            errors += _validate_probe(container[name], f"{path}.{name}", kind=name, grace_period_s=grace_period_s)
    return errors


def _validate_probe(probe: Json, path: str, *, kind: str, grace_period_s: int | None) -> list[FieldError]:
    errors = _validate_handler(probe, path, grace_period_s=grace_period_s)
    errors += [
        fe.invalid(f"{path}.{field}", probe[field], _NOT_NEGATIVE) for field in _NUMBERS if probe.get(field, 0) < 0
    ]
    grace = probe.get("terminationGracePeriodSeconds")
    if grace is not None and grace <= 0:
        errors.append(fe.invalid(f"{path}.terminationGracePeriodSeconds", grace, "must be greater than 0"))
    if kind == "readinessProbe":
        if grace is not None:
            detail = "must not be set for readinessProbes"
            errors.append(fe.invalid(f"{path}.terminationGracePeriodSeconds", grace, detail))
    elif probe.get("successThreshold", 0) != 1:
        errors.append(fe.invalid(f"{path}.successThreshold", probe.get("successThreshold", 0), "must be 1"))
    return errors


def _validate_handler(handler: Json, path: str, *, grace_period_s: int | None) -> list[FieldError]:
    errors: list[FieldError] = []
    found = False
    for name, check in _HANDLERS.items():
        if name not in handler:
            continue
        if found:
            errors.append(fe.forbidden(f"{path}.{name}", "may not specify more than 1 handler type"))
        else:
            found = True
            errors += check(handler[name], f"{path}.{name}")
    if "sleep" in handler and not found:
        found = True
        errors += _validate_sleep(handler["sleep"], f"{path}.sleep", grace_period_s)
    elif "sleep" in handler:
        errors.append(fe.forbidden(f"{path}.sleep", "may not specify more than 1 handler type"))
    return errors if found else [fe.required(path, "must specify a handler type")]


def _validate_exec(action: Json, path: str) -> list[FieldError]:
    return [] if action.get("command") else [fe.required(f"{path}.command")]


def _validate_http_get(action: Json, path: str) -> list[FieldError]:
    errors = [] if action.get("path") else [fe.required(f"{path}.path")]
    errors += _validate_port(action, path)
    if action.get("scheme") not in ("HTTP", "HTTPS"):
        errors.append(fe.not_supported(f"{path}.scheme", action.get("scheme", ""), ("HTTP", "HTTPS")))
    for header in action.get("httpHeaders", []):
        errors += list_invalid(f"{path}.httpHeaders", header.get("name", ""), find_http_header_problems)
    return errors


def _validate_port(action: Json, path: str) -> list[FieldError]:
    port = action.get("port", 0)
    return [fe.invalid(f"{path}.port", port, problem) for problem in find_port_problems(port)]


def _validate_sleep(action: Json, path: str, grace_period_s: int | None) -> list[FieldError]:
    seconds = action.get("seconds", 0)
    if grace_period_s is None or 0 <= seconds <= grace_period_s:
        return []
    detail = f"must be non-negative and less than terminationGracePeriodSeconds ({grace_period_s})"
    return [fe.invalid(path, seconds, detail)]


_HANDLERS: Final = {
    "exec": _validate_exec,
    "httpGet": _validate_http_get,
    "tcpSocket": _validate_port,
    "grpc": _validate_port,
}
