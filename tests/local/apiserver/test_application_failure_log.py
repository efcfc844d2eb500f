"""What a mistake of the server writes to the log of whoever embeds it without configuring structlog."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tests.local.apiserver.builders import ADMIN, ApiServerHarness

if TYPE_CHECKING:
    import pytest

PASSWORD = "aHVudGVyMg=="


def test_a_mistake_is_logged_with_its_place_and_without_values(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
):
    in_flight: list[Any] = []

    async def broken(_key: object, change: object) -> None:
        local_value = PASSWORD
        in_flight.append((local_value, change))
        raise ZeroDivisionError("no such luck")

    with ApiServerHarness() as world:
        world.namespace()
        monkeypatch.setattr(world.server.store, "update", broken)
        secret = {"metadata": {"name": "s"}, "data": {"password": PASSWORD}}
        reply = world.ask("POST", "/api/v1/namespaces/here/secrets", secret)
    assert (reply.status, len(in_flight)) == (500, 1)
    written = "".join(capfd.readouterr())
    assert "apiserver.request_failed" in written
    assert "ZeroDivisionError: no such luck" in written
    assert "in broken" in written
    assert PASSWORD not in written
    assert ADMIN not in written
