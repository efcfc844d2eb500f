"""The contexts of the kubeconfig of the service, read again for each use."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.kube.configuration import find_access

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.core.clock import Clock
    from plimsoll.kube.access import Access


class KubeconfigContexts:
    """`kubeconfig` empty: as kubectl finds it."""

    def __init__(self, kubeconfig: str, *, environment: Mapping[str, str], clock: Clock) -> None:
        self._kubeconfig = kubeconfig
        self._environment = environment
        self._clock = clock

    def find(self, context: str) -> Access:
        """Raises `InvalidInput`."""
        return find_access(
            kubeconfig=self._kubeconfig, context=context, environment=self._environment, clock=self._clock
        )
