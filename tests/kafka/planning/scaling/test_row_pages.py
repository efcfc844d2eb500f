"""The page of rows and tests is what the tests say."""

from __future__ import annotations

from pathlib import Path

from tests.kafka.planning.scaling.row_pages import SECTIONS, list_rows, page

PAGE = Path(__file__).parents[4] / "docs" / "reference" / "kafka-rows.md"


def test_the_page_names_every_row():
    written = PAGE.read_text(encoding="utf-8")
    assert written == page(), "python -m tests.kafka.planning.scaling.row_pages > docs/reference/kafka-rows.md"


def test_every_section_has_rows():
    rows = list_rows()
    assert all(len(rows[section]) > 5 for section in SECTIONS)
    assert {"rebalancing-stop", "not-ready-renewed"} <= rows["6.3"].keys()
