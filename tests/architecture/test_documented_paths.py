"""docs/architecture.md lists the files that a pod, a node, a request or a write passes: they exist, and are few."""

from __future__ import annotations

import re

import pytest

from tests.architecture.source_tree import REPOSITORY, SOURCE

MOST_FILES = 25
SECTIONS = (REPOSITORY / "docs" / "architecture.md").read_text(encoding="utf-8").split("\n## ")[1:]
PATHS = {section.splitlines()[0]: section for section in SECTIONS if section.startswith("The path of")}


@pytest.mark.parametrize("title", PATHS)
def test_a_documented_path_names_at_most_25_files_that_exist(title: str):
    files = re.findall(r"^\| `([\w/]+\.py)` \|", PATHS[title], re.MULTILINE)
    assert 5 < len(files) <= MOST_FILES
    assert not [file for file in files if not (SOURCE / "plimsoll" / file).exists()]


def test_every_journey_is_documented():
    assert len(PATHS) == 6
