"""The syntax of names, ports, keys and addresses, with the messages of Kubernetes.

Each check returns all messages, none for a valid text, in one pass. `core.names` checks label keys, label values,
subdomains and names of objects.
"""

from __future__ import annotations

import ipaddress
import re
from typing import Final

from plimsoll.core.names import count_bytes, find_subdomain_problems
from plimsoll.objects.schema import field_errors as fe

_PORT_NAME: Final = re.compile(r"[-a-z0-9]+")
_CONFIG_KEY: Final = re.compile(r"[-._a-zA-Z0-9]+")
_PERCENT: Final = re.compile(r"[0-9]+%")
_HTTP_HEADER: Final = re.compile(r"[-A-Za-z0-9]+")
_HTTP_PATH: Final = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")
_UNDERSCORED_PART: Final = re.compile(r"_?[a-z0-9][-_a-z0-9]*")

_UNDERSCORED_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '_', '-' or '.', and must "
    "start and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'_?[a-z0-9]([-_a-z0-9]*[a-z0-9])?(\._?[a-z0-9]([-_a-z0-9]*[a-z0-9])?)*')"
)
_CONFIG_KEY_RULE: Final = (
    "a valid config key must consist of alphanumeric characters, '-', '_' or '.' "
    "(e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is '[-._a-zA-Z0-9]+')"
)
_PERCENT_RULE: Final = (
    "a valid percent string must be a numeric string followed by an ending '%' "
    "(e.g. '1%',  or '93%', regex used for validation is '[0-9]+%')"
)
_HTTP_HEADER_RULE: Final = (
    "a valid HTTP header must consist of alphanumeric characters or '-' "
    "(e.g. 'X-Header-Name', regex used for validation is '[-A-Za-z0-9]+')"
)
_ENV_NAME_RULE: Final = (
    "a valid environment variable name must consist only of printable ASCII characters other than '='"
)
_IP_RULE: Final = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_CIDR_RULE: Final = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def find_underscored_subdomain_problems(value: str) -> list[str]:
    problems = ["must be no more than 253 characters"] if count_bytes(value) > 253 else []
    parts = value.split(".")
    if not all(_UNDERSCORED_PART.fullmatch(part) and part[-1] not in "-_" for part in parts):
        problems.append(_UNDERSCORED_RULE)
    return problems


def find_port_number_problems(value: int) -> list[str]:
    return [] if 1 <= value <= 65535 else ["must be between 1 and 65535, inclusive"]


def find_port_name_problems(value: str) -> list[str]:
    problems = ["must be no more than 15 characters"] if count_bytes(value) > 15 else []
    if not _PORT_NAME.fullmatch(value):
        problems.append("must contain only alpha-numeric characters (a-z, 0-9), and hyphens (-)")
    if not any("a" <= character <= "z" for character in value):
        problems.append("must contain at least one letter (a-z)")
    if "--" in value:
        problems.append("must not contain consecutive hyphens")
    if value and (value[0] == "-" or value[-1] == "-"):
        problems.append("must not begin or end with a hyphen")
    return problems


def find_port_problems(value: int | str) -> list[str]:
    return find_port_name_problems(value) if isinstance(value, str) else find_port_number_problems(value)


def find_env_name_problems(value: str) -> list[str]:
    if all(" " <= character <= "~" and character != "=" for character in value):
        return []
    return [_ENV_NAME_RULE]


def find_config_key_problems(value: str) -> list[str]:
    problems = ["must be no more than 253 characters"] if count_bytes(value) > 253 else []
    if not _CONFIG_KEY.fullmatch(value):
        problems.append(_CONFIG_KEY_RULE)
    if value == ".":
        problems.append("must not be '.'")
    elif value == "..":
        problems.append("must not be '..'")
    elif value.startswith(".."):
        problems.append("must not start with '..'")
    return problems


def find_percent_problems(value: str) -> list[str]:
    return [] if _PERCENT.fullmatch(value) else [_PERCENT_RULE]


def find_http_header_problems(value: str) -> list[str]:
    return [] if _HTTP_HEADER.fullmatch(value) else [_HTTP_HEADER_RULE]


def validate_domain_prefixed_path(path: str, value: str) -> list[fe.FieldError]:
    """`example.com/name`: the name of the controller that manages a Job."""
    if not value:
        return [fe.required(path)]
    host, _, rest = value.partition("/")
    if not host or not rest:
        return [fe.invalid(path, value, 'must be a domain-prefixed path (such as "acme.io/foo")')]
    errors = fe.list_invalid(path, host, find_subdomain_problems)
    if not _HTTP_PATH.fullmatch(rest):
        rule = r"Invalid path (regex used for validation is '[A-Za-z0-9/\-._~%!$&'()*+,;=:]+')"
        errors.append(fe.invalid(path, rest, rule))
    return errors


def validate_ip(path: str, value: str) -> list[fe.FieldError]:
    return [] if parse_ip(value) else [fe.invalid(path, value, _IP_RULE)]


def validate_cidr(path: str, value: str) -> list[fe.FieldError]:
    address, slash, bits = value.partition("/")
    parsed = parse_ip(address)
    fits = (
        parsed and slash and bits.isascii() and bits.isdigit() and len(bits) <= 3 and int(bits) <= parsed.max_prefixlen
    )
    return [] if fits else [fe.invalid(path, value, _CIDR_RULE)]


def parse_ip(value: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    """Parse an address of an old field: leading zeros in IPv4 are decimal, not an error."""
    text = value
    if len(value) <= 64 and ":" not in value and value.isascii():
        text = ".".join(part.lstrip("0") or "0" if part.isdigit() else part for part in value.split("."))
    try:
        return ipaddress.ip_address(text) if len(text) <= 64 and "%" not in text else None
    except ValueError:
        return None


def format_inclusive_range(low: int, high: int) -> str:
    return f"must be between {low} and {high}, inclusive"
