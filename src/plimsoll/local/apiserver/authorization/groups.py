"""The groups the server itself gives a meaning to."""

from __future__ import annotations

from typing import Final

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
# To its members nothing is refused, whatever the roles say.
MASTERS: Final = "system:masters"
