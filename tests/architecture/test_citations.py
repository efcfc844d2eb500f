"""Every design section that code or a page cites exists."""

from __future__ import annotations

import io
import re
import tokenize
from functools import cache
from typing import TYPE_CHECKING

import pytest

from tests.architecture.source_tree import REPOSITORY, python_files, read_file

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

DESIGN = REPOSITORY / "docs" / "design"
CITATION = re.compile(
    r"(?<![\w/])(?P<path>(?:docs/design|specs)/[\w/-]+\.md)"
    r"(?P<rest>(?:[ ,;]|and|sections?|\d[\d.-]*|§)*)"
)
SECTION = re.compile(r"\d+(?:\.\d+)*")
BARE_CITATION = re.compile(
    r"\((?:section )?\d{1,2}\.\d{1,2}(?:\.\d+)*(?:(?:,| and| to) \d{1,2}(?:\.\d+)*)*\)|(?<![\w/-])[a-z]+\.md \d[\d.]*"
)
"""Numbers of sections in parentheses without their page, or with a page without its folder."""
HEADING = re.compile(r"^(?:#+ |\*\*)(\d+(?:\.\d+)*)", re.MULTILINE)


STEP = re.compile(r"^(\d+)\. ", re.MULTILINE)


@cache
def sections(page: Path) -> frozenset[str]:
    """Numbers of headings, and of the numbered steps below them: 6.1.9 is step 9 of section 6.1."""
    _, *parts = HEADING.split(page.read_text(encoding="utf-8"))
    found = set(parts[::2])
    for number, text in zip(parts[::2], parts[1::2], strict=True):
        found |= {f"{number}.{step}" for step in STEP.findall(text)}
    return frozenset(found)


def cited_files() -> list[Path]:
    found = [path for folder in ("src", "tests", "benchmarks") for path in python_files(folder)]
    return [*found, *(REPOSITORY / "docs").glob("*.md"), *(REPOSITORY / "docs" / "reference").glob("*.md")]


def test_every_cited_section_exists():
    missing = []
    for path in cited_files():
        for citation in CITATION.finditer(read_file(path)):
            page = REPOSITORY / citation["path"]
            where = f"{path.relative_to(REPOSITORY)}: {citation[0].strip()}"
            if not page.exists():
                missing.append(where)
                continue
            numbers = SECTION.findall(citation["rest"])
            known = sections(page)
            missing += [where for number in numbers if number not in known]
    assert not missing, "\n".join(missing)


def test_a_section_or_step_that_is_not_there_is_noticed():
    known = sections(DESIGN / "nodes.md")
    assert {"6.7", "6.1.9", "8.3.1"} <= known
    assert not {"6.99", "6.1.99", "99", "8.3.99"} & known


def test_no_section_is_cited_without_its_page():
    bare = []
    for folder in ("src", "tests", "benchmarks"):
        for path in python_files(folder):
            for line, text in _prose(path) if BARE_CITATION.search(read_file(path)) else ():
                bare += [f"{path.relative_to(REPOSITORY)}:{line}: {found}" for found in BARE_CITATION.findall(text)]
    assert not bare, "\n".join(bare)


def _prose(path: Path) -> Iterator[tuple[int, str]]:
    """Comments and docstrings of a file, with their first lines."""
    for token in tokenize.generate_tokens(io.StringIO(read_file(path)).readline):
        is_docstring = token.type == tokenize.STRING and token.string.startswith('"""')
        if token.type == tokenize.COMMENT or is_docstring:
            yield token.start[0], token.string


@pytest.mark.parametrize("page", sorted(path.name for path in DESIGN.glob("*.md") if path.name != "README.md"))
def test_design_pages_have_numbered_sections(page: str):
    assert sections(DESIGN / page)
