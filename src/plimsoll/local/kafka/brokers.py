"""Simulated brokers and their log directories."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

DEFAULT_BYTES_PER_S: Final = 100_000_000.0
DEFAULT_DISK_BYTES: Final = 1 << 40


@dataclass(slots=True)
class SimulatedLogDir:
    """A log directory on a volume of its own."""

    path: str
    total_bytes: int = DEFAULT_DISK_BYTES
    used: float = 0.0
    is_online: bool = True

    @property
    def usable_bytes(self) -> int:
        return max(self.total_bytes - int(self.used), 0)


@dataclass(slots=True)
class SimulatedBroker:
    """A broker. `is_running`: its process; `is_fenced`: whether the controller has missed its heartbeats."""

    id: int
    rack: str = ""
    log_dirs: dict[str, SimulatedLogDir] = field(default_factory=dict)
    bytes_per_s: float = DEFAULT_BYTES_PER_S
    """What its network carries, in each direction, and a move between its log directories."""
    static_settings: dict[str, str] = field(default_factory=dict)
    """The settings of its file."""
    is_running: bool = True
    is_registered: bool = True
    is_fenced: bool = False
    fenced_at_s: float | None = None
    """When the controller will fence it, if its process has ended."""

    @property
    def is_active(self) -> bool:
        """Whether the controller takes it for alive."""
        return self.is_registered and not self.is_fenced

    @property
    def is_alive(self) -> bool:
        """Whether it replicates and leads."""
        return self.is_running and self.is_active

    @property
    def answers(self) -> bool:
        """Whether clients get answers: a broker whose registration was removed still answers, with stale data."""
        return self.is_running and self.is_registered

    def choose_log_dir(self, replicas_per_dir: dict[str, int], cordoned: frozenset[str]) -> str:
        """The directory of a new replica: online and with the fewest replicas; cordoned ones only if there is no other.

        Cordoning keeps new topics away. An explicit reassignment is accepted all the same.
        """
        online = [path for path, log_dir in self.log_dirs.items() if log_dir.is_online] or list(self.log_dirs)
        free = [path for path in online if path not in cordoned] or online
        return min(free, key=lambda path: (replicas_per_dir.get(path, 0), path))
