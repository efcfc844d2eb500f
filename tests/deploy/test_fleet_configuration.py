"""The configuration reference of the fleet manager is that of the models, and every key is described."""

from __future__ import annotations

from pathlib import Path

from tests.deploy.fleet_configuration_page import MODELS, page

REPOSITORY = Path(__file__).parents[2]


def test_the_reference_is_generated_from_the_models():
    assert (REPOSITORY / "docs" / "reference" / "fleet-configuration.md").read_text(encoding="utf-8") == page()


def test_every_key_has_a_description():
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    assert len(rows) > 80
    assert [row for row in rows if row.endswith("|  |")] == []


def test_every_file_has_a_section():
    assert page().count("\n## `") == len(MODELS)
