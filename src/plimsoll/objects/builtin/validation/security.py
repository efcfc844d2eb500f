"""Validation of security contexts, of pods and of containers.

Windows options are not judged; see docs/reference/built-in-validation.md.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import count_bytes
from plimsoll.objects.builtin.validation import references
from plimsoll.objects.builtin.validation.syntax import format_inclusive_range
from plimsoll.objects.schema import field_errors as fe

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

_IDS: Final = range(2**32)
_PROFILE_TYPES: Final = ("Localhost", "RuntimeDefault", "Unconfined")
_PROC_MOUNTS: Final = ("Default", "Unmasked")
_SYSCTL_PART: Final = re.compile(r"[a-z0-9][-_a-z0-9]*")
_SYSCTL_RULE: Final = (
    "must have at most 253 characters and match regex "
    r"^([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?$"
)


def validate_pod(context: Json, path: str, *, spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        errors += _validate_user_id(context.get(field), f"{path}.{field}")
    for position, group in enumerate(context.get("supplementalGroups", [])):
        errors += _validate_user_id(group, f"{path}.supplementalGroups[{position}]")
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        errors.append(fe.invalid(f"{path}.shareProcessNamespace", True, detail))  # noqa: FBT003 a value, not a switch
    errors += _validate_sysctls(context.get("sysctls", []), f"{path}.sysctls", spec=spec)
    errors += _validate_word(context, path, "fsGroupChangePolicy", ("Always", "OnRootMismatch"))
    errors += _validate_profile(context.get("seccompProfile"), f"{path}.seccompProfile", called="seccomp")
    errors += _validate_profile(context.get("appArmorProfile"), f"{path}.appArmorProfile", called="AppArmor")
    errors += _validate_word(context, path, "supplementalGroupsPolicy", ("Merge", "Strict"))
    return [*errors, *_validate_word(context, path, "seLinuxChangePolicy", ("MountOption", "Recursive"))]


def validate_container(context: Json, path: str, *, host_users: bool) -> list[FieldError]:
    errors: list[FieldError] = []
    for field in ("runAsUser", "runAsGroup"):
        errors += _validate_user_id(context.get(field), f"{path}.{field}")
    errors += _validate_word(context, path, "procMount", _PROC_MOUNTS)
    if host_users and context.get("procMount") == "Unmasked":
        detail = "`hostUsers` must be false to use `Unmasked`"
        errors.append(fe.invalid(f"{path}.procMount", "Unmasked", detail))
    errors += _validate_profile(context.get("seccompProfile"), f"{path}.seccompProfile", called="seccomp")
    if context.get("allowPrivilegeEscalation") is False:
        before = "cannot set `allowPrivilegeEscalation` to false and"
        if context.get("privileged"):
            errors.append(fe.invalid(path, context, f"{before} `privileged` to true"))
        if "CAP_SYS_ADMIN" in context.get("capabilities", {}).get("add", []):
            errors.append(fe.invalid(path, context, f"{before} `capabilities.Add` CAP_SYS_ADMIN"))
    return [*errors, *_validate_profile(context.get("appArmorProfile"), f"{path}.appArmorProfile", called="AppArmor")]


def _validate_user_id(number: int | None, path: str) -> list[FieldError]:
    if number is None or number in _IDS:
        return []
    return [fe.invalid(path, number, format_inclusive_range(0, 2**32 - 1))]


def _validate_word(context: Json, path: str, field: str, supported: tuple[str, ...]) -> list[FieldError]:
    word = context.get(field)
    return [] if word is None or word in supported else [fe.not_supported(f"{path}.{field}", word, supported)]


def _validate_sysctls(sysctls: list[Json], path: str, *, spec: Json) -> list[FieldError]:
    errors: list[FieldError] = []
    seen: set[str] = set()
    for position, sysctl in enumerate(sysctls):
        here, name = f"{path}[{position}].name", sysctl.get("name", "")
        if not name:
            errors.append(fe.required(here))
        elif not _is_sysctl(name):
            errors.append(fe.invalid(here, name, _SYSCTL_RULE))
        elif name in seen:
            errors.append(fe.duplicate(here, name))
        seen.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            errors.append(fe.invalid(here, name, "may not be specified when 'hostNetwork' is true"))
        elif spec.get("hostIPC") and dotted.startswith(("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")):
            errors.append(fe.invalid(here, name, "may not be specified when 'hostIPC' is true"))
    return errors


def _is_sysctl(name: str) -> bool:
    parts = name.replace("/", ".").split(".")
    return count_bytes(name) <= 253 and all(_SYSCTL_PART.fullmatch(part) and part[-1] not in "-_" for part in parts)


def _validate_profile(profile: Json | None, path: str, *, called: str) -> list[FieldError]:
    if profile is None:
        return []
    kind, local = profile.get("type", ""), profile.get("localhostProfile")
    field = "appArmorProfile" if called == "AppArmor" else "seccompProfile"
    errors: list[FieldError] = []
    if not kind:
        errors.append(fe.required(f"{path}.type", f"type is required when {field} is set"))
    elif kind not in _PROFILE_TYPES:
        errors.append(fe.not_supported(f"{path}.type", kind, _PROFILE_TYPES))
    if kind == "Localhost":
        return [*errors, *_validate_localhost(local, f"{path}.localhostProfile", called=called)]
    if local is not None and (called == "seccomp" or kind in _PROFILE_TYPES):
        shown = profile if called == "seccomp" else local
        detail = f"can only be set when {called} type is Localhost"
        errors.append(fe.invalid(f"{path}.localhostProfile", shown, detail))
    return errors


def _validate_localhost(local: str | None, path: str, *, called: str) -> list[FieldError]:
    if local is None:
        return [fe.required(path, f"must be set when {called} type is Localhost")]
    if called == "seccomp":
        return references.validate_descending_path(local, path)
    if local != local.strip():
        errors = [fe.invalid(path, local, "must not be padded with whitespace")]
    else:
        errors = [] if local else [fe.required(path, "must be set when AppArmor type is Localhost")]
    if count_bytes(local) > 4095:
        errors.append(fe.too_long(path, 4095))
    return errors
