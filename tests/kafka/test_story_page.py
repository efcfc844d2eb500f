"""The page docs/kafka-story.md is a run of what the script has now."""

from __future__ import annotations

from pathlib import Path

from tests.kafka.story_page import STORY, build_pattern

PAGE = Path(__file__).parents[2] / "docs" / "kafka-story.md"


def test_the_page_is_a_run_of_the_script():
    written = PAGE.read_text(encoding="utf-8")
    assert build_pattern().fullmatch(written), "make kafka-story"
    assert written != STORY
    assert "| acknowledged records that were not read | 0 |" in written
