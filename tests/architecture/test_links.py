"""No link of a page leads nowhere: its file exists, and the heading that it names is there."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
FOLDERS = ("docs", "examples")
FOUND = (page for folder in FOLDERS for page in (REPOSITORY / folder).rglob("*.md"))
PAGES = sorted([*REPOSITORY.glob("*.md"), *FOUND])
LINK = re.compile(r"(?<!\\)\]\(([^)\s]+)(?: \"[^\"]*\")?\)")
CODE = re.compile(r"^(```|~~~).*?^\1|`[^`\n]*`", re.DOTALL | re.MULTILINE)
HEADING = re.compile(r"^#{1,6} +(.+?) *#*$", re.MULTILINE)


@cache
def list_anchors(page: Path) -> frozenset[str]:
    """The anchors of its headings, as GitHub makes them."""
    found: dict[str, int] = {}
    anchors = set()
    for heading in HEADING.findall(re.sub(r"^(```|~~~).*?^\1", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)):
        text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).lower()
        anchor = re.sub(r"[^\w\- ]", "", text).replace(" ", "-")
        number = found[anchor] = found.get(anchor, -1) + 1
        anchors.add(anchor if number == 0 else f"{anchor}-{number}")
    return frozenset(anchors)


def find_dead_links(page: Path) -> list[str]:
    dead = []
    for link in LINK.findall(CODE.sub("", page.read_text())):
        if re.match(r"[a-z]+:", link):
            continue  # other sites are not looked at: tests need no network
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in list_anchors(target)):
            dead.append(link)
    return dead


def test_every_link_leads_somewhere():
    assert len(PAGES) > 1
    assert {page: dead for page in PAGES if (dead := find_dead_links(page))} == {}


def test_a_dead_link_is_found(tmp_path: Path):
    (tmp_path / "a.md").write_text("# One `two`\n\n[x](#one-two) [y](#three) [z](b.md) `[n](none.md)`\n")
    assert find_dead_links(tmp_path / "a.md") == ["#three", "b.md"]
