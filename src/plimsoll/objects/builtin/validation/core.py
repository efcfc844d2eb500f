"""Validation of ConfigMaps, Secrets and Namespaces."""

from __future__ import annotations

import base64
import binascii
import json
from typing import TYPE_CHECKING, Any, Final

from plimsoll.core.names import count_bytes
from plimsoll.objects.builtin.validation.metadata import validate_finalizer_name, validate_unchanged
from plimsoll.objects.builtin.validation.syntax import find_config_key_problems
from plimsoll.objects.schema import field_errors as fe
from plimsoll.objects.schema.field_errors import list_invalid
from plimsoll.objects.schema.json_values import is_same

if TYPE_CHECKING:
    from plimsoll.objects.schema.field_errors import FieldError

Json = dict[str, Any]

MOST_BYTES: Final = 1024 * 1024
_FROZEN: Final = "field is immutable when `immutable` is set"
# The path of an error about the whole object, as Kubernetes writes it.
_WHOLE: Final = "[]"
_SERVICE_ACCOUNT_NAME: Final = "kubernetes.io/service-account.name"
_DOCKER_KEYS: Final = {
    "kubernetes.io/dockercfg": ".dockercfg",
    "kubernetes.io/dockerconfigjson": ".dockerconfigjson",
}


def validate_config_map(obj: Json) -> list[FieldError]:
    data, binary = obj.get("data", {}), obj.get("binaryData", {})
    errors: list[FieldError] = []
    for key in data:
        errors += list_invalid(f"data[{key}]", key, find_config_key_problems)
        if key in binary:
            errors.append(fe.invalid(f"data[{key}]", key, "duplicate of key present in binaryData"))
    for key in binary:
        errors += list_invalid(f"binaryData[{key}]", key, find_config_key_problems)
    total = sum(map(count_bytes, data.values())) + sum(map(_compute_decoded_size, binary.values()))
    if total > MOST_BYTES:
        errors.append(fe.too_long(_WHOLE, MOST_BYTES))
    return errors


def validate_config_map_update(new: Json, old: Json) -> list[FieldError]:
    return _check_immutable(new, old, "data", "binaryData")


def validate_secret(obj: Json) -> list[FieldError]:
    data = obj.get("data", {})
    errors = [error for key in data for error in list_invalid(f"data[{key}]", key, find_config_key_problems)]
    if sum(map(_compute_decoded_size, data.values())) > MOST_BYTES:
        errors.append(fe.too_long("data", MOST_BYTES))
    return [*errors, *_validate_secret_type(obj, data)]


def _validate_secret_type(obj: Json, data: Json) -> list[FieldError]:
    kind = obj.get("type", "")
    if kind == "kubernetes.io/service-account-token":
        if obj.get("metadata", {}).get("annotations", {}).get(_SERVICE_ACCOUNT_NAME):
            return []
        return [fe.required(f"metadata.annotations[{_SERVICE_ACCOUNT_NAME}]")]
    if kind in _DOCKER_KEYS:
        return _validate_docker_config(data, _DOCKER_KEYS[kind])
    if kind == "kubernetes.io/basic-auth" and not {"username", "password"} & data.keys():
        return [fe.required("data[username]"), fe.required("data[password]")]
    if kind == "kubernetes.io/ssh-auth" and not data.get("ssh-privatekey"):
        return [fe.required("data[ssh-privatekey]")]
    if kind == "kubernetes.io/tls":
        return [fe.required(f"data[{key}]") for key in ("tls.crt", "tls.key") if key not in data]
    return []


def _validate_docker_config(data: Json, key: str) -> list[FieldError]:
    if key not in data:
        return [fe.required(f"data[{key}]")]
    try:
        decoded = json.loads(base64.b64decode(data[key]))
    except (binascii.Error, ValueError, RecursionError):
        decoded = None
    if isinstance(decoded, dict):
        return []
    return [fe.invalid(f"data[{key}]", "<secret contents redacted>", "must be a JSON object")]


def validate_secret_update(new: Json, old: Json) -> list[FieldError]:
    errors = validate_unchanged("type", new.get("type", ""), old.get("type", ""))
    return [*errors, *_check_immutable(new, old, "data")]


def _check_immutable(new: Json, old: Json, *fields: str) -> list[FieldError]:
    if not old.get("immutable"):
        return []
    errors = [] if new.get("immutable") else [fe.forbidden("immutable", _FROZEN)]
    return [
        *errors,
        *(fe.forbidden(field, _FROZEN) for field in fields if not is_same(new.get(field, {}), old.get(field, {}))),
    ]


def validate_namespace(obj: Json) -> list[FieldError]:
    return [
        error
        for name in obj.get("spec", {}).get("finalizers", [])
        for error in validate_finalizer_name(name, "spec.finalizers")
    ]


def _compute_decoded_size(text: str) -> int:
    """Bytes behind base64 text that decodes (see `decoding`)."""
    plain = len(text) - text.count("\n") - text.count("\r")
    return plain // 4 * 3 - text[-2:].count("=")
