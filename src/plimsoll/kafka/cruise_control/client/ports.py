"""What the reconcilers need of the Cruise Control of one Kafka cluster. Answers are values; nothing here raises.

A server that is unreachable, silent, forbidding or incomprehensible is a `RebalanceRefused` like any other refusal:
the reconcilers show its reason, and `is_transient` says whether the request is repeated without a user.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from plimsoll.kafka.model.rebalances import (
        ExecutorSubstate,
        RebalanceAnswer,
        RebalanceRefused,
        RebalanceSpec,
        RebalanceTaskAnswer,
    )
    from plimsoll.objects.api.kafka import Kafka


class CruiseControl(Protocol):
    """The Cruise Control of one Kafka cluster."""

    async def request_rebalance(self, spec: RebalanceSpec, *, is_dry_run: bool) -> RebalanceAnswer:
        """Request a proposal; without `is_dry_run` its execution starts as well.

        The request is never repeated by itself: a second one could start a second execution.
        """
        ...

    async def read_user_task(self, session_id: str) -> RebalanceTaskAnswer:
        """The user task of a former request."""
        ...

    async def find_execution(self, spec: RebalanceSpec) -> RebalanceTaskAnswer:
        """The newest user task of a real run (not a dry run) with exactly this request; NoSuchTask: there is none.

        It answers whether a request whose answer was lost has been accepted, so that it is not sent twice. An execution
        that an engine has resumed after its restart counts too: its request is not known any more.
        """
        ...

    async def stop_execution(self) -> RebalanceRefused | None:
        """Stop the execution, if there is one. None: accepted; the executor may still be stopping."""
        ...

    async def read_executor_state(self) -> ExecutorSubstate | RebalanceRefused:
        """What the executor does now."""
        ...


class CruiseControls(Protocol):
    """Finds the Cruise Control of a Kafka cluster."""

    async def find(self, kafka: Kafka) -> CruiseControl | RebalanceRefused:
        """The Cruise Control of `kafka`; refused: a Secret that its access needs is missing or wrong.

        Opens no connection. Reads Secrets only where the security of the cluster requires them.
        """
        ...
