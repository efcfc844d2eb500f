"""What a label key and a label value may look like, and how Kubernetes words its complaint when they do not.

Used by the selectors beside it and by whoever validates objects. Every check returns all complaints as a list of
sentences (empty: fine) and works in one pass over the text: values of many megabytes come from hostile clients.
"""

from __future__ import annotations

import re
from typing import Final

_QUALIFIED: Final = re.compile(r"[-A-Za-z0-9_.]+")
_SUBDOMAIN_PART: Final = re.compile(r"[-a-z0-9]+")

_NAME_RULE: Final = (
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character "
    "(e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
_VALUE_RULE: Final = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
_SUBDOMAIN_RULE: Final = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    r"'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


def label_key_problems(key: str) -> list[str]:
    """Complaints about `[prefix/]name`, in the order and wording of Kubernetes' qualified names."""
    parts = key.split("/", 2)
    if len(parts) > 2:
        return [
            f"a qualified name {_NAME_RULE} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"
        ]
    problems: list[str] = []
    name = parts[-1]
    if len(parts) == 2:
        prefix = parts[0]
        if not prefix:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in subdomain_problems(prefix)]
    if not name:
        problems.append("name part must be non-empty")
    elif _size(name) > 63:
        problems.append("name part must be no more than 63 characters")
    if not _is_qualified(name):
        problems.append(f"name part {_NAME_RULE}")
    return problems


def label_value_problems(value: str) -> list[str]:
    problems: list[str] = []
    if _size(value) > 63:
        problems.append("must be no more than 63 characters")
    if value and not _is_qualified(value):
        problems.append(_VALUE_RULE)
    return problems


def subdomain_problems(value: str) -> list[str]:
    """Complaints about a lowercase RFC 1123 subdomain, what most object names have to be."""
    problems: list[str] = []
    if _size(value) > 253:
        problems.append("must be no more than 253 characters")
    if not all(_is_subdomain_part(part) for part in value.split(".")):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def _size(text: str) -> int:
    """Kubernetes counts bytes, not characters."""
    return len(text.encode("utf-8", "surrogatepass"))


def _is_qualified(text: str) -> bool:
    return _QUALIFIED.fullmatch(text) is not None and text[0] not in "-_." and text[-1] not in "-_."


def _is_subdomain_part(text: str) -> bool:
    return _SUBDOMAIN_PART.fullmatch(text) is not None and text[0] != "-" and text[-1] != "-"
