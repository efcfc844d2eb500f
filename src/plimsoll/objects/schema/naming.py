"""Names Kubernetes accepts, and its sentences for those it does not.

A rule is a function from text to a list of complaints (empty: fine); they become the details of field errors. Used for
metadata of all kinds, for CRDs and for the name formats of schemas.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable

    NameRule = Callable[[str], list[str]]

_LABEL_1123 = "[a-z0-9]([-a-z0-9]*[a-z0-9])?"
_LABEL_1035 = "[a-z]([-a-z0-9]*[a-z0-9])?"
_SUBDOMAIN_1123 = rf"{_LABEL_1123}(\.{_LABEL_1123})*"
_QUALIFIED = "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]"

_IS_LABEL_1123 = re.compile(_LABEL_1123)
_IS_LABEL_1035 = re.compile(_LABEL_1035)
_IS_SUBDOMAIN_1123 = re.compile(_SUBDOMAIN_1123)
_IS_QUALIFIED = re.compile(_QUALIFIED)


def too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def _sentence(words: str, pattern: str, *examples: str) -> str:
    shown = "".join(f"'{example}',  or " for example in examples[:-1]) + f"'{examples[-1]}'"
    return f"{words} (e.g. {shown}, regex used for validation is '{pattern}')"


_LABEL_1123_WORDS = _sentence(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character",
    _LABEL_1123,
    "my-name",
    "123-abc",
)
_SUBDOMAIN_1123_WORDS = _sentence(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    _SUBDOMAIN_1123,
    "example.com",
)
_LABEL_1035_WORDS = _sentence(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    _LABEL_1035,
    "my-name",
    "abc-123",
)
_QUALIFIED_WORDS = _sentence(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    _QUALIFIED,
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_PATTERN = "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?"
_LABEL_VALUE_WORDS = _sentence(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    _LABEL_VALUE_PATTERN,
    "MyValue",
    "my_value",
    "12345",
)


def dns1123_label_problems(name: str) -> list[str]:
    problems = [too_long(63)] if len(name) > 63 else []
    if not _IS_LABEL_1123.fullmatch(name):
        if _IS_SUBDOMAIN_1123.fullmatch(name):
            problems.append("must not contain dots")
        else:
            problems.append(_LABEL_1123_WORDS)
    return problems


def dns1123_subdomain_problems(name: str) -> list[str]:
    problems = [too_long(253)] if len(name) > 253 else []
    if not _IS_SUBDOMAIN_1123.fullmatch(name):
        problems.append(_SUBDOMAIN_1123_WORDS)
    return problems


def dns1035_label_problems(name: str) -> list[str]:
    problems = [too_long(63)] if len(name) > 63 else []
    if not _IS_LABEL_1035.fullmatch(name):
        problems.append(_LABEL_1035_WORDS)
    return problems


def path_segment_problems(name: str) -> list[str]:
    """What every name must obey because it becomes part of a URL."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in ("/", "%") if character in name]


def qualified_name_problems(name: str) -> list[str]:
    """`example.com/MyName` or `MyName`: keys of labels and annotations."""
    parts = name.split("/")
    if len(parts) > 2:
        words = f"a qualified name {_QUALIFIED_WORDS}"
        return [f"{words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in dns1123_subdomain_problems(parts[0])]
    local = parts[-1]
    if not local:
        problems.append("name part must be non-empty")
    elif len(local) > 63:
        problems.append(f"name part {too_long(63)}")
    if not _IS_QUALIFIED.fullmatch(local):
        problems.append(f"name part {_QUALIFIED_WORDS}")
    return problems


def label_value_problems(value: str) -> list[str]:
    problems = [too_long(63)] if len(value) > 63 else []
    if value and not _IS_QUALIFIED.fullmatch(value):
        problems.append(_LABEL_VALUE_WORDS)
    return problems


def of_prefix(rule: NameRule) -> NameRule:
    """The rule for a generateName: its last character may be a dash, because a suffix follows."""

    def problems(name: str) -> list[str]:
        # Kubernetes puts an `a` where a final dash stands and then asks the rule for names.
        return rule(f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name)

    return problems
