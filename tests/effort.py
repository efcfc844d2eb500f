"""How long the long tests run: a part in `make test` and in CI, the whole under `make test-long`."""

from __future__ import annotations

import os

IS_LONG = bool(os.environ.get("PLIMSOLL_TEST_LONG"))
SHARE = 5
"""A short run tries one example in five."""


def share_of(whole: int) -> int:
    """The number of examples, clusters or rounds to try in this run."""
    return whole if IS_LONG else max(1, whole // SHARE)
