"""`docs/reference/api-server.md` says what the tables of the tests say."""

from __future__ import annotations

from tests.conformance.reference_page import PAGE, written


def test_the_page_is_up_to_date():
    page = PAGE.read_text()
    assert page == written(page), "run: python -m tests.conformance.reference_page"
