"""The parts of `docs/reference/api-server.md` that follow from tables, written from them.

python -m tests.conformance.reference_page      # bring the page up to date
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING

from plimsoll.local.apiserver.resources.builtin import list_builtin_resources
from tests.conformance.fuzzing import ALLOWED_5XX
from tests.conformance.known_differences import KNOWN_DIFFERENCES
from tests.conformance.recordings import API_SERVER_GROUPS, by_id, golden
from tests.e2e.kubectl.recorded_commands import KNOWN_DIFFERENCES as KUBECTL_DIFFERENCES
from tests.e2e.kubectl.recorded_commands import NEEDS_CONTROLLERS

if TYPE_CHECKING:
    from collections.abc import Iterator

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "api-server.md"


def written(page: str) -> str:
    """`page` with its kept parts as the tables say."""
    parts = {"served": _served(), "share": _share(), "differences": _differences(), "errors": _errors()}
    for name, text in parts.items():
        pattern = re.compile(rf"(<!-- {name}: [^>]*-->\n).*?(<!-- /{name} -->)", re.DOTALL)
        page, count = pattern.subn(lambda found, text=text: f"{found[1]}\n{text}\n{found[2]}", page)  # type: ignore[misc]
        assert count == 1, f"the page has no part {name}"
    return page


def _served() -> str:
    by_version: dict[str, list[str]] = {}
    for resource in list_builtin_resources():
        by_version.setdefault(resource.api_version, []).append(resource.kind)
    rows = [f"| {version} | {', '.join(sorted(kinds))} |" for version, kinds in by_version.items()]
    return "\n".join(("| group and version | kinds |", "|---|---|", *rows, ""))


def _share() -> str:
    recorded = sum(len(golden(group)) for group in API_SERVER_GROUPS)
    equal = recorded - len(KNOWN_DIFFERENCES)
    return f"{equal} of {recorded} recorded answers are equal ({100 * equal / recorded:.1f} %).\n"


def _differences() -> str:
    rows = [f"| {item} | {by_id(item).title} | {reason} |" for item, reason in KNOWN_DIFFERENCES.items()]
    table = "\n".join(("| recorded answer | about | why it differs |", "|---|---|---|", *map(_in_cells, rows)))
    return f"{table}\n\nkubectl commands:\n\n" + "\n".join((*_kubectl_rows(), ""))


def _in_cells(row: str) -> str:
    return row.replace("$", "\\$")


def _kubectl_rows() -> Iterator[str]:
    yield "| command | why |"
    yield "|---|---|"
    for item, reason in KUBECTL_DIFFERENCES.items():
        yield f"| {item} | differs: {reason} |"
    for item, reason in NEEDS_CONTROLLERS.items():
        yield f"| {item} | left to the local cluster: {reason} |"


def _errors() -> str:
    return "\n".join((*(f"- {code} `{pattern.pattern}`" for code, pattern in ALLOWED_5XX), ""))


if __name__ == "__main__":
    PAGE.write_text(written(PAGE.read_text()))
