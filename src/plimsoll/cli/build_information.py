"""Which commit a program was built from, and when.

Builds write `build.json` into the package. Without it, in a checkout, the commit is that of the checkout, and it is
not built.
"""

from __future__ import annotations

import json
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Final

BUILD_FILE: Final = "build.json"
UNKNOWN: Final = "unknown"
_PACKAGE: Final = Path(__file__).parents[1]
_TIMEOUT_S: Final = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class BuildInformation:
    """`commit`: a hash, with `-dirty` for a checkout with changes. `built_at`: RFC 3339; empty: not built."""

    commit: str = UNKNOWN
    built_at: str = ""
    variant: str = ""


def read_build_information(folder: Path = _PACKAGE) -> BuildInformation:
    """Read what the program in `folder` was built from. An unreadable file counts as missing."""
    try:
        written = json.loads((folder / BUILD_FILE).read_bytes())
    except (OSError, ValueError):
        return BuildInformation(commit=_find_commit(folder))
    if not isinstance(written, dict):
        return BuildInformation()
    return BuildInformation(
        commit=str(written.get("commit", UNKNOWN)),
        built_at=str(written.get("builtAt", "")),
        variant=str(written.get("variant", "")),
    )


def _find_commit(folder: Path) -> str:
    """Find the commit of the checkout that contains the package, not of one around its environment."""
    root = folder.parents[1]
    if not (root / ".git").exists() or folder.parent.name != "src":
        return UNKNOWN
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        ended = subprocess.run(command, capture_output=True, text=True, timeout=_TIMEOUT_S, check=False)  # noqa: S603
    except (OSError, subprocess.TimeoutExpired):
        return UNKNOWN
    return ended.stdout.strip() or UNKNOWN
