"""Addresses of nodes and pods: each is unique while it is in use.

The objects hold the addresses in use; a pool only remembers those reported to it and those it assigned. They are
assigned in sequence, so that an address just released is not reused at once.
"""

from __future__ import annotations

import ipaddress
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Hashable


class AddressPool:
    """The addresses of one network, without its own and the broadcast address. Users are known by a key."""

    def __init__(self, network: str) -> None:
        try:
            self._network = ipaddress.ip_network(network)
        except ValueError as error:
            raise InvalidInput(str(error)) from error
        self._size = max(self._network.num_addresses - 2, 0)
        self._next = 0
        self._user_of: dict[str, Hashable] = {}
        self._address_of: dict[Hashable, str] = {}

    @property
    def is_unused(self) -> bool:
        return not self._address_of

    def assign_address(self, user: Hashable, *, has: str = "") -> str:
        """The user's address: the one it `has`, the one it was given before, or a new one; empty if all are taken."""
        if has:
            self._claim(user, has)
            return has
        return self._address_of.get(user) or self._allocate(user)

    def release(self, user: Hashable) -> None:
        address = self._address_of.pop(user, None)
        if address is not None and self._user_of.get(address) == user:
            del self._user_of[address]

    def _claim(self, user: Hashable, address: str) -> None:
        if self._address_of.get(user) == address:
            return
        self.release(user)
        self._address_of[user] = address
        self._user_of.setdefault(address, user)

    def _allocate(self, user: Hashable) -> str:
        for _ in range(min(len(self._user_of) + 1, self._size)):
            address = str(self._network[self._next + 1])
            self._next = (self._next + 1) % self._size
            if address not in self._user_of:
                self._claim(user, address)
                return address
        return ""


class AddressPools:
    """The pools of the networks that nodes have, and the one for nodes without a network of their own."""

    def __init__(self, shared: str) -> None:
        self._shared = AddressPool(shared)
        self._pools: dict[str, AddressPool] = {}
        self._closed: set[str] = set()
        self._network_of: dict[Hashable, str] = {}

    @property
    def networks(self) -> list[str]:
        """Those that are remembered, without the shared one."""
        return list(self._pools)

    def assign_address(self, user: Hashable, network: str, *, has: str = "") -> str:
        """As `AddressPool.assign_address`; no network: the shared one."""
        if self._network_of.get(user, network) != network:
            self.release(user)
        if network and network not in self._pools:
            self._pools[network] = AddressPool(network)
        self._closed.discard(network)
        self._network_of[user] = network
        return self._get_pool(network).assign_address(user, has=has)

    def release(self, user: Hashable) -> None:
        network = self._network_of.pop(user, None)
        if network is not None:
            self._get_pool(network).release(user)
            self._drop_if_done(network)

    def close(self, network: str) -> None:
        """Its node is gone. It is kept while an address of it is in use."""
        if network in self._pools:
            self._closed.add(network)
            self._drop_if_done(network)

    def _get_pool(self, network: str) -> AddressPool:
        return self._pools[network] if network else self._shared

    def _drop_if_done(self, network: str) -> None:
        if network in self._closed and self._pools[network].is_unused:
            self._closed.remove(network)
            del self._pools[network]
