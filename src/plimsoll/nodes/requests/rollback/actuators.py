"""What serves ProvisioningRequests in one loop: the status writer, the rollback executor, the status updates."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from plimsoll.nodes.requests.rollback.rollback import RollbackContext

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.nodes.requests.model import StatusUpdate
    from plimsoll.nodes.requests.rollback.rollback import RollbackExecutor
    from plimsoll.nodes.requests.status_updates import StatusUpdates
    from plimsoll.nodes.requests.status_writer import RequestStatusWriter


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestActuators:
    """The writers and executors that one loop uses for requests."""

    status_writer: RequestStatusWriter
    rollback_executor: RollbackExecutor
    status_updates: StatusUpdates
    rollback_context: RollbackContext = field(default_factory=RollbackContext)
    may_act: bool = True
    """Whether anything may be written or called."""

    async def write(self, updates: Sequence[StatusUpdate]) -> tuple[StatusUpdate, ...]:
        """Write the updates, unless paused or in a dry run: then none counts as written."""
        if not self.may_act:
            return tuple(replace(update, is_written=False) for update in updates)
        return await self.status_writer.write_all(updates)
