"""A bearer token for servers that ask for one, such as the simulated PD and Prometheus of `plimsoll up`.

The operator names the servers that may see the token. A URL that came from another server (PD names its Prometheus)
never gets it, and the token is never printed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Collection


class BearerToken:
    """A token for the servers at `bases` and for no others. Raises `InvalidInput` under the name `path`."""

    def __init__(self, text: str, *, bases: Collection[str], path: str) -> None:
        self._text = text.strip()
        self._bases = tuple(base for base in bases if base)
        if not self._text or not all("!" <= letter <= "~" for letter in self._text):
            raise InvalidInput("holds no token: one word of printable ASCII was expected", path=path)
        if not self._bases:
            raise InvalidInput("a token is sent only to servers that are given by address, and none is", path=path)

    def __repr__(self) -> str:
        return f"BearerToken(bases={self._bases!r})"

    def build_headers(self, url: str) -> dict[str, str]:
        """The authorization header; empty for servers that may not see the token."""
        known = any(url == base or url.startswith((f"{base}/", f"{base}?")) for base in self._bases)
        return {"Authorization": f"Bearer {self._text}"} if known else {}
