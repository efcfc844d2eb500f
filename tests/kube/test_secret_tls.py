"""A TLS context is built from a Secret only if the Secret has everything it should."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.secret_tls import AUTHORITY_KEY, CERTIFICATE_KEY, build_tls_context

if TYPE_CHECKING:
    from tests.golden.reviewed_sentences import ReviewedSentences

WHERE = "Secret shop/tls"


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (None, "cannot be read"),
        ({}, "holds neither ca.crt nor tls.crt"),
        ({AUTHORITY_KEY: b"no certificate"}, "ca.crt"),
    ],
    ids=["unreadable", "empty", "not a certificate"],
)
def test_an_unusable_secret_is_named_with_its_problem(data: dict[str, bytes] | None, problem: str):
    with pytest.raises(InvalidInput, match=f"{WHERE}.*{problem}|{problem}.*{WHERE}"):
        build_tls_context(data, WHERE)


def test_a_key_that_is_needed_and_missing_is_named(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as raised:
        build_tls_context({AUTHORITY_KEY: b"x"}, WHERE, needed=(CERTIFICATE_KEY,))
    reviewed(str(raised.value))
