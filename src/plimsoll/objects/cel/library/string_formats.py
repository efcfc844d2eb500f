"""The named string formats of CEL's `format` library, with the error messages of Kubernetes."""

from __future__ import annotations

import base64
import binascii
import re
from typing import TYPE_CHECKING

from plimsoll.core.names import find_label_value_problems, find_qualified_name_problems, find_subdomain_problems
from plimsoll.objects.cel.errors import CelEvaluationError
from plimsoll.objects.cel.library.network import is_url
from plimsoll.objects.cel.values.times import parse_timestamp

if TYPE_CHECKING:
    from collections.abc import Callable

_LABEL = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_UUID = re.compile(r"[0-9a-fA-F]{8}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{4}-?[0-9a-fA-F]{12}", re.ASCII)
_DATE = re.compile(r"\d{4}-\d{2}-\d{2}", re.ASCII)

_LABEL_RULE = (
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', "
    "and must start and end with an alphanumeric character"
)
_LABEL_1035_RULE = (
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', "
    "start with an alphabetic character, and end with an alphanumeric character"
)


def _check_length(text: str, limit: int) -> list[str]:
    return [f"must be no more than {limit} characters"] if len(text) > limit else []


def _check_pattern(text: str, pattern: str, rule: str, *examples: str) -> list[str]:
    if re.fullmatch(pattern, text, re.ASCII):
        return []
    shown = " or ".join(f"'{example}', " for example in examples)
    return [f"{rule} (e.g. {shown}regex used for validation is '{pattern}')"]


def _label(text: str) -> list[str]:
    return _check_length(text, 63) + _check_pattern(text, _LABEL, _LABEL_RULE, "my-name", "123-abc")


def _validate_label_1035(text: str) -> list[str]:
    return _check_length(text, 63) + _check_pattern(text, _LABEL_1035, _LABEL_1035_RULE, "my-name", "abc-123")


def _build_prefix_check(check: Callable[[str], list[str]]) -> Callable[[str], list[str]]:
    """Check a prefix, which may end in a dash, because a generated name continues after it."""

    def check_prefix(text: str) -> list[str]:
        return check(f"{text[:-1]}a" if len(text) > 1 and text.endswith("-") else text)

    return check_prefix


def _check_uri(text: str) -> list[str]:
    return [] if is_url(text) else [f'parse "{text}": invalid URI for request']


def _check_uuid(text: str) -> list[str]:
    return [] if _UUID.fullmatch(text) else ["does not match the UUID format"]


def _check_byte(text: str) -> list[str]:
    try:
        base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return ["invalid base64"]
    return []


def _check_date(text: str) -> list[str]:
    return [] if _DATE.fullmatch(text) and not _check_datetime(f"{text}T00:00:00Z") else ["invalid date"]


def _check_datetime(text: str) -> list[str]:
    try:
        parse_timestamp(text)
    except CelEvaluationError:
        return ["invalid datetime"]
    return []


FORMATS: dict[str, Callable[[str], list[str]]] = {
    "dns1123Label": _label,
    "dns1123Subdomain": find_subdomain_problems,
    "dns1035Label": _validate_label_1035,
    "qualifiedName": find_qualified_name_problems,
    "dns1123LabelPrefix": _build_prefix_check(_label),
    "dns1123SubdomainPrefix": _build_prefix_check(find_subdomain_problems),
    "dns1035LabelPrefix": _build_prefix_check(_validate_label_1035),
    "labelValue": find_label_value_problems,
    "uri": _check_uri,
    "uuid": _check_uuid,
    "byte": _check_byte,
    "date": _check_date,
    "datetime": _check_datetime,
}
