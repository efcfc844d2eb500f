"""The groups that have a meaning to the server itself."""

from __future__ import annotations

from typing import Final

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
# To its members nothing is refused, whatever the roles say.
MASTERS: Final = "system:masters"
