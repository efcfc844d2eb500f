"""One-time codes and the sessions that they open.

The code stands in the fragment of the URL, which browsers send to no server. The page exchanges it for a cookie. A code
works once and for a limited time; a cookie is a random value that no other server accepts.
"""

from __future__ import annotations

import hmac
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.core.entropy import Entropy

CODE_LIFE_S: Final = 15 * 60.0
SESSION_LIFE_S: Final = 12 * 3_600.0
_MOST_SESSIONS: Final = 100
_BYTES: Final = 24


class Sessions:
    """The codes that were given out and not used, and the cookies that are valid."""

    def __init__(self, *, clock: Clock, entropy: Entropy) -> None:
        self._clock = clock
        self._entropy = entropy
        self._codes: dict[str, float] = {}
        self._sessions: dict[str, float] = {}

    def issue_code(self) -> str:
        """A new code. It works once."""
        code = self._entropy.generate_token(_BYTES)
        self._codes[code] = self._clock.monotonic_s() + CODE_LIFE_S
        return code

    def exchange(self, code: str) -> str | None:
        """The value of the cookie for a code; None if the code is unknown, used or too old."""
        known = _find(self._codes, code)
        ends_s = self._codes.pop(known, 0.0)
        now_s = self._clock.monotonic_s()
        if ends_s <= now_s:
            return None
        session = self._entropy.generate_token(_BYTES)
        while len(self._sessions) >= _MOST_SESSIONS:
            del self._sessions[next(iter(self._sessions))]
        self._sessions[session] = now_s + SESSION_LIFE_S
        return session

    def is_valid(self, session: str) -> bool:
        """Whether a cookie belongs to a session that has not ended."""
        return self._sessions.get(_find(self._sessions, session), 0.0) > self._clock.monotonic_s()

    def end(self, session: str) -> None:
        self._sessions.pop(_find(self._sessions, session), None)


def _find(known: dict[str, float], given: str) -> str:
    """The known value that equals the given one, compared in constant time; empty if there is none."""
    wanted = given.encode(errors="replace")
    return next((value for value in known if hmac.compare_digest(value.encode(), wanted)), "")
