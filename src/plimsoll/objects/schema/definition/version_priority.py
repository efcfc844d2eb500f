"""The preference of API versions: v2 before v1, v1 before v1beta1, beta before alpha, others last.

Deprecation warnings and discovery use the same order.
"""

from __future__ import annotations

import re
from typing import Any

_VERSION = re.compile(r"v([1-9][0-9]*)(?:(alpha|beta)([1-9][0-9]*))?", re.ASCII)
_STAGES = {"alpha": 0, "beta": 1, None: 2}


def compute_priority(version: str) -> tuple[int, int, int, int, str]:
    """A key that sorts the preferred version last."""
    found = _VERSION.fullmatch(version)
    if found is None:
        # Names that follow no convention come after all that do, in the order of the alphabet.
        return (0, 0, 0, 0, "".join(chr(0x10FFFF - ord(character)) for character in version))
    return (1, _STAGES[found[2]], int(found[1]), int(found[3] or 0), "")


def build_deprecation_warning(
    version: dict[str, Any], versions: list[dict[str, Any]], *, group: str, kind: str
) -> str | None:
    """The warning for every use of a deprecated version."""
    if not version.get("deprecated"):
        return None
    if version.get("deprecationWarning") is not None:
        return str(version["deprecationWarning"])
    better = [
        other["name"]
        for other in versions
        if other.get("served")
        and not other.get("deprecated")
        and compute_priority(other["name"]) > compute_priority(version["name"])
    ]
    warning = f"{group}/{version['name']} {kind} is deprecated"
    return f"{warning}; use {group}/{max(better, key=compute_priority)} {kind}" if better else warning
