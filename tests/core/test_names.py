from __future__ import annotations

import pytest

from plimsoll.core.names import find_label_value_problems, find_qualified_name_problems, find_subdomain_problems

NAME = (
    "name part must consist of alphanumeric characters, '-', '_' or '.', and must start and end with an alphanumeric "
    "character (e.g. 'MyName',  or 'my.name',  or '123-abc', regex used for validation is "
    "'([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]')"
)
VALUE = (
    "a valid label must be an empty string or consist of alphanumeric characters, '-', '_' or '.', and must start and "
    "end with an alphanumeric character (e.g. 'MyValue',  or 'my_value',  or '12345', regex used for validation is "
    "'(([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9])?')"
)
SUBDOMAIN = (
    "a lowercase RFC 1123 subdomain must consist of lower case alphanumeric characters, '-' or '.', and must start "
    "and end with an alphanumeric character (e.g. 'example.com', regex used for validation is "
    "'[a-z0-9]([-a-z0-9]*[a-z0-9])?(\\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*')"
)


@pytest.mark.parametrize("key", ["a", "app.kubernetes.io/name", "1", "A_b-c.d", "x" * 63, f"{'x' * 253}/n"])
def test_good_keys(key: str):
    assert find_qualified_name_problems(key) == []


@pytest.mark.parametrize(
    ("key", "problems"),
    [
        ("", ["name part must be non-empty", NAME]),
        ("x" * 64, ["name part must be no more than 63 characters"]),
        ("-a", [NAME]),
        ("a b", [NAME]),
        ("ä", [NAME]),
        ("a\n", [NAME]),
        ("/a", ["prefix part must be non-empty"]),
        ("example.com/", ["name part must be non-empty", NAME]),
        ("Example.com/a", [f"prefix part {SUBDOMAIN}"]),
        ("a..b/c", [f"prefix part {SUBDOMAIN}"]),
        (f"{'x' * 254}/a", ["prefix part must be no more than 253 characters"]),
        (
            "a/b/c",
            [
                (
                    f"a qualified name {NAME.removeprefix('name part ')} with an optional DNS subdomain prefix and '/' "
                    "(e.g. 'example.com/MyName')"
                )
            ],
        ),
    ],
)
def test_bad_keys(key: str, problems: list[str]):
    assert find_qualified_name_problems(key) == problems


@pytest.mark.parametrize("value", ["", "x", "a.b_c-d", "9" * 63])
def test_good_values(value: str):
    assert find_label_value_problems(value) == []


@pytest.mark.parametrize(
    ("value", "problems"),
    [
        ("x" * 64, ["must be no more than 63 characters"]),
        ("a b", [VALUE]),
        (".a", [VALUE]),
        ("-" * 64, ["must be no more than 63 characters", VALUE]),
    ],
)
def test_bad_values(value: str, problems: list[str]):
    assert find_label_value_problems(value) == problems


@pytest.mark.parametrize(("name", "fine"), [("a.b-c.1", True), ("a-.b", False), ("", False), ("A", False)])
def test_subdomains(name: str, fine: bool):
    assert (find_subdomain_problems(name) == []) is fine


def test_megabytes_of_dashes_are_refused_in_one_pass():
    assert find_qualified_name_problems("a" + "-" * 5_000_000) != []
    assert find_subdomain_problems("a." * 2_000_000) != []
