"""Builders for tests of authentication: accounts, an adjustable clock, tokens with a fixed key."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from plimsoll.local.apiserver.authentication import ServiceAccountTokens, TokenAuthenticator, build_administrator
from plimsoll.local.apiserver.http_types import Request
from plimsoll.runtime.entropy import SeededEntropy

START = datetime(2026, 11, 15, 4, 2, 58, tzinfo=UTC)
KEY = b"a key of thirty-two bytes exactly"
ADMIN_TOKEN = "the-admin-token"
AUDIENCE = "https://kubernetes.default.svc"


class AdjustableClock:
    def __init__(self) -> None:
        self.time = START

    def now(self) -> datetime:
        return self.time

    def turn(self, seconds: float) -> None:
        self.time += timedelta(seconds=seconds)

    def monotonic_s(self) -> float:
        return self.time.timestamp()

    async def sleep(self, seconds: float) -> None:
        raise AssertionError(f"somebody slept {seconds} s")


class FakeAccounts:
    """ServiceAccounts and the objects tokens are bound to, by kind, namespace and name."""

    def __init__(self) -> None:
        self.objects: dict[tuple[str, str, str], dict[str, Any]] = {}
        self.add("ServiceAccount", "auth", "sa", uid="uid-1")

    def add(self, kind: str, namespace: str, name: str, *, uid: str, **metadata: Any) -> None:
        self.objects[kind, namespace, name] = {"metadata": {"name": name, "uid": uid, **metadata}}

    def find(self, kind: str, namespace: str, name: str) -> dict[str, Any] | None:
        return self.objects.get((kind, namespace, name))

    def find_account(self, namespace: str, name: str) -> dict[str, Any] | None:
        return self.find("ServiceAccount", namespace, name)


class AuthenticatorHarness:
    """An authenticator with everything it looks at in reach."""

    def __init__(self, static: dict[str, Any] | None = None, authorizer: Any = None) -> None:
        self.clock = AdjustableClock()
        self.accounts = FakeAccounts()
        self.tokens = ServiceAccountTokens(KEY, entropy=SeededEntropy(1))
        self.authenticator = TokenAuthenticator(
            {ADMIN_TOKEN: build_administrator(), **(static or {})},
            self.tokens,
            self.accounts.find_account,
            self.clock,
            authorizer=authorizer,
            find_bound=self.accounts.find,
        )

    def token(self, **details: Any) -> str:
        claims = {"namespace": "auth", "name": "sa", "uid": "uid-1", "audiences": [AUDIENCE], "expires_in_s": 3600}
        return self.tokens.issue(**{**claims, **details}, now=self.clock.now())

    def enter(self, token: str | None = None, **headers: str) -> Any:
        """Who is let in; header names are written with underscores."""
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if token is not None:
            named["authorization"] = f"Bearer {token}"
        return self.authenticator.authenticate(Request(method="GET", path="/api/v1/pods", headers=named))
