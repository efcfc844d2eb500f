"""The driver without persistence, for virtual time and tests: no thread, no file, every write is settled at once."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from plimsoll.local.apiserver.storage.drivers.interface import Compaction, Recovered, Write

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.local.apiserver.storage.drivers.interface import Problem, Settle


class MemoryDriver:
    """What the store holds in memory is all there is."""

    is_inline: ClassVar[bool] = True

    def __init__(self) -> None:
        self._settle: Settle = _ignore_outcomes

    def recover(self) -> Recovered:
        return Recovered(rows=(), floors={}, revision=0)

    def start(self, settle: Settle) -> None:
        self._settle = settle

    def submit(self, write: Write) -> None:
        self._settle(((write, None),))

    def forget(self, forgotten: Compaction) -> None:
        """Nothing was kept."""

    async def aclose(self, revision: int) -> None:
        """Nothing is held."""


def _ignore_outcomes(_outcomes: Sequence[tuple[Write, Problem | None]]) -> None:
    raise RuntimeError("submit before start")
