"""The syntax of names, label keys and label values, with the error messages of Kubernetes; generated names.

A rule is a function from text to all its problems (empty: valid); they become the details of field errors and of
selector errors. Every rule makes one pass over the text: hostile clients send values of many megabytes. Lengths are
counted in bytes, as Kubernetes does.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

    NameRule = Callable[[str], list[str]]

LONGEST_LABEL: Final = 63
LONGEST_SUBDOMAIN: Final = 253

SAFE_ALPHABET: Final = "bcdfghjklmnpqrstvwxz2456789"
"""The characters of generated names (apimachinery, `pkg/util/rand`): no vowels and no look-alikes."""

_QUALIFIED: Final = re.compile(r"[-A-Za-z0-9_.]+")
_DNS_LABEL: Final = re.compile(r"[-a-z0-9]+")


def _format_sentence(words: str, pattern: str, *examples: str) -> str:
    shown = "".join(f"'{example}',  or " for example in examples[:-1]) + f"'{examples[-1]}'"
    return f"{words} (e.g. {shown}, regex used for validation is '{pattern}')"


_LABEL_1123_RULE: Final = _format_sentence(
    "a lowercase RFC 1123 label must consist of lower case alphanumeric characters or '-', and must start and end with "
    "an alphanumeric character",
    "[a-z0-9]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "123-abc",
)
_LABEL_1035_RULE: Final = _format_sentence(
    "a DNS-1035 label must consist of lower case alphanumeric characters or '-', start with an alphabetic character, "
    "and end with an alphanumeric character",
    "[a-z]([-a-z0-9]*[a-z0-9])?",
    "my-name",
    "abc-123",
)
_SUBDOMAIN_RULE: Final = _format_sentence(
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start and "
    "end with an alphanumeric character",
    r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*",
    "example.com",
)
_QUALIFIED_RULE: Final = _format_sentence(
    "must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric character",
    "([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]",
    "MyName",
    "my.name",
    "123-abc",
)
_LABEL_VALUE_RULE: Final = _format_sentence(
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character",
    "(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?",
    "MyValue",
    "my_value",
    "12345",
)


def format_too_long(limit: int) -> str:
    return f"must be no more than {limit} characters"


def find_qualified_name_problems(name: str) -> list[str]:
    """Complaints about `[prefix/]name`: keys of labels and annotations, finalizers, extended resources."""
    parts = name.split("/", 2)
    if len(parts) > 2:
        words = f"a qualified name {_QUALIFIED_RULE}"
        return [f"{words} with an optional DNS subdomain prefix and '/' (e.g. 'example.com/MyName')"]
    problems: list[str] = []
    if len(parts) == 2:
        if not parts[0]:
            problems.append("prefix part must be non-empty")
        else:
            problems += [f"prefix part {problem}" for problem in find_subdomain_problems(parts[0])]
    local = parts[-1]
    if not local:
        problems.append("name part must be non-empty")
    elif count_bytes(local) > LONGEST_LABEL:
        problems.append(f"name part {format_too_long(LONGEST_LABEL)}")
    if not _is_qualified(local):
        problems.append(f"name part {_QUALIFIED_RULE}")
    return problems


def find_label_value_problems(value: str) -> list[str]:
    problems = [format_too_long(LONGEST_LABEL)] if count_bytes(value) > LONGEST_LABEL else []
    if value and not _is_qualified(value):
        problems.append(_LABEL_VALUE_RULE)
    return problems


def find_subdomain_problems(value: str) -> list[str]:
    """Complaints about a lowercase RFC 1123 subdomain, what most object names have to be."""
    problems = [format_too_long(LONGEST_SUBDOMAIN)] if count_bytes(value) > LONGEST_SUBDOMAIN else []
    if not _is_subdomain(value):
        problems.append(_SUBDOMAIN_RULE)
    return problems


def find_dns1123_label_problems(name: str) -> list[str]:
    """Complaints about what a namespace, a container or a volume may be called."""
    problems = [format_too_long(LONGEST_LABEL)] if count_bytes(name) > LONGEST_LABEL else []
    if not _is_dns_label(name):
        problems.append("must not contain dots" if _is_subdomain(name) else _LABEL_1123_RULE)
    return problems


def find_dns1035_label_problems(name: str) -> list[str]:
    """Complaints about what a service or a custom resource may be called: a label that starts with a letter."""
    problems = [format_too_long(LONGEST_LABEL)] if count_bytes(name) > LONGEST_LABEL else []
    if not _is_dns_label(name) or name[0].isdigit():
        problems.append(_LABEL_1035_RULE)
    return problems


def find_path_segment_problems(name: str) -> list[str]:
    """The rules of every name, because it becomes part of a URL."""
    if name in {".", ".."}:
        return [f"may not be '{name}'"]
    return [f"may not contain '{character}'" for character in ("/", "%") if character in name]


def build_prefix_rule(rule: NameRule) -> NameRule:
    """The rule for a generateName: its last character may be a dash, because a suffix follows."""

    def find_problems(name: str) -> list[str]:
        # Kubernetes replaces a final dash by `a` and then applies the rule for names.
        return rule(f"{name[:-2]}a" if len(name) > 1 and name.endswith("-") else name)

    return find_problems


def encode_safe_string(text: str) -> str:
    """Letters and digits of which no word can be made, one for each character (Kubernetes' `SafeEncodeString`)."""
    return "".join(SAFE_ALPHABET[ord(character) % len(SAFE_ALPHABET)] for character in text)


def count_bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "surrogatepass"))


@lru_cache(maxsize=1024)
def _is_qualified(text: str) -> bool:
    return _QUALIFIED.fullmatch(text) is not None and text[0] not in "-_." and text[-1] not in "-_."


@lru_cache(maxsize=1024)
def _is_dns_label(text: str) -> bool:
    return _DNS_LABEL.fullmatch(text) is not None and text[0] != "-" and text[-1] != "-"


def _is_subdomain(text: str) -> bool:
    return all(_is_dns_label(part) for part in text.split("."))
