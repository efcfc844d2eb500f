from __future__ import annotations

import pytest

from plimsoll.objects.schema.admission.formats import find_checker

CASES = [
    ("date-time", "2026-01-01T00:00:00Z", True),
    ("date-time", "2026-01-01T00:00:00.123456789+02:00", True),
    ("date-time", "2026-02-30T00:00:00Z", False),
    ("date-time", "2026-01-01", False),
    ("date", "2026-01-31", True),
    ("date", "2026-1-31", False),
    ("duration", "1h30m", True),
    ("duration", "22 ns", True),
    ("duration", "1 minute", True),
    ("duration", "soon", False),
    ("ipv4", "10.0.0.1", True),
    ("ipv4", "10.0.0.256", False),
    ("ipv4", "::1", False),
    ("ipv6", "::1", True),
    ("ipv6", "10.0.0.1", False),
    ("cidr", "10.0.0.0/8", True),
    ("cidr", "10.0.0.1/8", True),
    ("cidr", "10.0.0.0", False),
    ("mac", "00:00:5e:00:53:01", True),
    ("mac", "00-00-5e-00-53-01", True),
    ("mac", "0000.5e00.5301", True),
    ("mac", "00:00-5e:00:53:01", False),
    ("uuid", "123E4567-e89b-12d3-a456-426614174000", True),
    ("uuid4", "123e4567-e89b-12d3-a456-426614174000", False),
    ("byte", "YQ==", True),
    ("byte", "Y", False),
    ("uri", "https://example.com/x?y", True),
    ("uri", "/path", True),
    ("uri", "example.com", False),
    ("email", "a@example.com", True),
    ("email", "a", False),
    ("hostname", "node-1.example.com", True),
    ("hostname", "-x", False),
    ("isbn10", "0321751043", True),
    ("isbn10", "0321751044", False),
    ("isbn13", "978-0321751041", True),
    ("creditcard", "4012 8888 8888 1881", True),
    ("creditcard", "4012 8888 8888 1882", False),
    ("hexcolor", "#FFF", True),
    ("rgbcolor", "rgb(1,2,3)", True),
    ("ssn", "111-11-1111", True),
    ("quantity", "10Gi", True),
    ("quantity", "10gI", False),
    ("password", "anything", True),
    ("k8s-short-name", "a-1", True),
    ("k8s-short-name", "a.b", False),
    ("k8s-long-name", "a.b", True),
]


@pytest.mark.parametrize(("format_", "text", "fits"), CASES)
def test_a_format_is_read_as_go_reads_it(format_: str, text: str, *, fits: bool):
    checker = find_checker(format_)

    assert checker is not None
    assert checker(text) is fits


@pytest.mark.parametrize("format_", ["int32", "semver", "k8s-anything", ""])
def test_other_formats_are_remarks(format_: str):
    assert find_checker(format_) is None
