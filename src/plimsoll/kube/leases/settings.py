"""Settings of a leader election: the Lease, its times, and the identity of this process.

The defaults are those of client-go and of Cluster Autoscaler (15 s / 10 s / 2 s), so that all
candidates for one Lease use the same times.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.core.names import find_dns1123_label_problems, find_subdomain_problems
from plimsoll.core.values import Value

if TYPE_CHECKING:
    from plimsoll.core.entropy import Entropy

INT32_MAX = 2**31 - 1


class LeaseSettings(Value):
    """Which Lease, and the times of its election.

    A leader renews every `retry_period_s` and gives up when it could not for `renew_deadline_s`. A challenger looks
    at least every `retry_period_s`, at chance times no closer than a `1 + jitter`-th of it, so that many challengers
    do not come at once and none is late.
    """

    name: str
    namespace: str
    duration_s: int = 15
    renew_deadline_s: float = 10.0
    retry_period_s: float = 2.0
    jitter: float = 1.2
    margin_s: float | None = None
    """What the leader takes off the end of its own time, against clocks of unequal speed. None: a twentieth of it."""
    longest_duration_s: int = 3600
    """A record may ask for more than this; we wait no longer. Our own does not: we would not wait for one of us."""
    release_timeout_s: float = 3.0
    """How long a graceful leave takes at most, whatever the server does; a lease not given back runs out by itself."""
    field_manager: str = "plimsoll"

    def __post_init__(self) -> None:
        for field, problems in (
            ("name", find_subdomain_problems(self.name)),
            ("namespace", find_dns1123_label_problems(self.namespace)),
        ):
            if problems:
                raise InvalidInput(problems[0] if getattr(self, field) else "must not be empty", path=field)
        if not 0 < self.release_timeout_s < math.inf:
            raise InvalidInput(f"must be more than 0, is {self.release_timeout_s}", path="release_timeout_s")
        if not 1 <= self.duration_s <= INT32_MAX or self.duration_s != int(self.duration_s):
            raise InvalidInput(f"must be a whole number of seconds from 1 on, is {self.duration_s}", path="duration_s")
        if self.duration_s > self.longest_duration_s:
            raise InvalidInput(
                f"must not be longer than longest_duration_s, {self.longest_duration_s}, is {self.duration_s}",
                path="duration_s",
            )
        if not 0 <= self.jitter < math.inf:
            raise InvalidInput(f"must not be negative, is {self.jitter}", path="jitter")
        if not 0 < self.retry_period_s < math.inf:
            raise InvalidInput(f"must be more than 0, is {self.retry_period_s}", path="retry_period_s")
        # client-go asks for the same relations.
        if not self.retry_period_s * max(1.0, self.jitter) < self.renew_deadline_s:
            raise InvalidInput("must be longer than the retry period with its jitter", path="renew_deadline_s")
        if not 0 <= self.drift_margin_s < self.duration_s:
            raise InvalidInput("must leave something of the duration", path="margin_s")
        if not self.renew_deadline_s < self.validity_s:
            raise InvalidInput("must be shorter than the duration without its margin", path="renew_deadline_s")

    @property
    def drift_margin_s(self) -> float:
        return self.duration_s / 20 if self.margin_s is None else self.margin_s

    @property
    def validity_s(self) -> float:
        """How long a renewal counts, from the moment before it was sent."""
        return self.duration_s - self.drift_margin_s

    @property
    def request_timeout_s(self) -> float:
        """Two requests fit into the deadline: one that is lost, and one that finds out what became of it."""
        return self.renew_deadline_s / 2

    @property
    def shortest_call_s(self) -> float:
        """A guarded call that has less time than this is not begun: it would more likely be lost than answered."""
        return min(1.0, self.duration_s / 20)

    def draw_look_interval_s(self, entropy: Entropy) -> float:
        """How long a challenger waits before it looks again."""
        return entropy.draw_uniform(self.retry_period_s / (1 + self.jitter), self.retry_period_s)


def generate_identity(host: str, entropy: Entropy) -> str:
    """A name no other process ever has, this one's next start included: `host_uuid`, as client-go's users make it."""
    return f"{host}_{entropy.generate_uid()}"
