"""A stored object in the version of a request, for those who make a change of it: `writing` and `deleting`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

Json = dict[str, Any]

if TYPE_CHECKING:
    from plimsoll.local.apiserver.server import Server
    from plimsoll.local.apiserver.storage import Stored
    from plimsoll.local.apiserver.strategies.interface import Strategy


def shown(server: Server, strategy: Strategy, stored: Stored) -> Json:
    """Nobody's to change: what is stored as it is shown is one dict for all who ask."""
    if strategy.is_stored_as_shown:
        return server.store.shared_body(stored)
    return strategy.present(stored.body())
