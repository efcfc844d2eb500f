"""The recorded answers we do not give, each with its reason; `docs/reference/api-server.md` shows the same table.

The list is exact: a test fails for an id that differs and is not here, and for one that is here and does not differ.
"""

from __future__ import annotations

KNOWN_DIFFERENCES: dict[str, str] = {}
