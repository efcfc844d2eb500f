"""Our values in place of recorded ones: a later request names uids, resourceVersions and tokens of earlier answers.

`Substitutions` learns from every pair of a recorded answer and ours, and translates the requests that follow.
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any, Final

# Keys whose recorded values later requests may carry.
_LEARNT: Final = ("uid", "resourceVersion", "continue", "name")


class Substitutions:
    """Recorded value → ours, by the key it stands under."""

    def __init__(self) -> None:
        self._ours: dict[str, dict[str, str]] = {key: {} for key in _LEARNT}
        self._tokens: dict[str, str] = {}

    def learn(self, recorded: Any, ours: Any) -> None:
        """Walk two answers to the same request side by side."""
        if isinstance(recorded, dict) and isinstance(ours, dict):
            generated = bool(recorded.get("generateName"))
            for key, value in recorded.items():
                other = ours.get(key)
                if key in _LEARNT and isinstance(value, str) and isinstance(other, str):
                    if key != "name" or generated or value.startswith("kube-api-access-"):
                        self.put(key, value, other)
                else:
                    self.learn(value, other)
        elif isinstance(recorded, list) and isinstance(ours, list):
            for item, other in zip(recorded, ours, strict=False):
                self.learn(item, other)

    def put(self, key: str, recorded: str, ours: str) -> None:
        self._ours[key].setdefault(recorded, ours)

    def put_token(self, placeholder: str, token: str) -> None:
        """`<jwt of auth/sa>` in recorded bodies stands for a token."""
        self._tokens[placeholder] = token

    def path(self, path: str) -> str:
        return "/".join(self._ours["name"].get(part, part) for part in path.split("/"))

    def query(self, query: dict[str, str]) -> dict[str, str]:
        return {name: self._parameter(name, value) for name, value in query.items()}

    def _parameter(self, name: str, value: str) -> str:
        if name == "continue":
            return self._ours["continue"].get(value) or self._token_at_our_revision(value)
        return self._ours["resourceVersion"].get(value, value) if name == "resourceVersion" else value

    def _token_at_our_revision(self, value: str) -> str:
        """A continue token says a revision and a key; one from an unrecorded list is rewritten."""
        try:
            token = json.loads(base64.urlsafe_b64decode(value + "=" * (-len(value) % 4)))
        except (binascii.Error, ValueError):
            return value
        ours = self._ours["resourceVersion"].get(str(token["rv"]))
        text = json.dumps({**token, "rv": int(ours)} if ours else token, separators=(",", ":"))
        return base64.urlsafe_b64encode(text.encode()).rstrip(b"=").decode()

    def body(self, value: Any, *, key: str = "") -> Any:
        if isinstance(value, dict):
            return {self._text(name): self.body(item, key=name) for name, item in value.items()}
        if isinstance(value, list):
            return [self.body(item, key=key) for item in value]
        if isinstance(value, str):
            if key in {"resourceVersion", "name"}:
                return self._ours[key].get(value, value)
            return self._text(value)
        return value

    def _text(self, text: str) -> str:
        for recorded, ours in (*self._ours["uid"].items(), *self._tokens.items()):
            text = text.replace(recorded, ours)
        return text

    def answer(self, value: Any) -> Any:
        """Our answer with our tokens hidden as the recording hides them."""
        if isinstance(value, dict):
            return {name: self.answer(item) for name, item in value.items()}
        if isinstance(value, list):
            return [self.answer(item) for item in value]
        if isinstance(value, str):
            return next((placeholder for placeholder, token in self._tokens.items() if token == value), value)
        return value
