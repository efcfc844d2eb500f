"""A token for PD, Prometheus or a planner behind a gate, as `plimsoll up` has one before its simulated ones.

The command line reads it from a file and names the servers that may see it; `HttpWeb` shows it to them. An address
that somebody else told (PD knows where Prometheus is) never gets it, and nothing here prints it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection


class BearerToken:
    """Shown to the servers at these bases, and to nobody else. Raises `InvalidInput` under the name `path`."""

    def __init__(self, text: str, *, bases: Collection[str], path: str) -> None:
        self._text = text.strip()
        self._bases = tuple(base for base in bases if base)
        if not self._text or not all("!" <= letter <= "~" for letter in self._text):
            raise InvalidInput("holds no token: one word of printable ASCII was expected", path=path)
        if not self._bases:
            raise InvalidInput("a token is shown only to servers that are given by address, and none is", path=path)

    def __repr__(self) -> str:
        return f"BearerToken(bases={self._bases!r})"

    def headers_for(self, url: str) -> dict[str, str]:
        """Empty for everybody else."""
        known = any(url == base or url.startswith((f"{base}/", f"{base}?")) for base in self._bases)
        return {"Authorization": f"Bearer {self._text}"} if known else {}
