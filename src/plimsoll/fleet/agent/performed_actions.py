"""Carries actions out, one after the other, and remembers what became of each: done, failed, or held back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import structlog

from plimsoll.core.errors import PlimsollError
from plimsoll.core.plans import Action, NotDone, Outcome, Reason, Ref, Result
from plimsoll.kube.errors import ApiError, Conflict, NotAllowed, UnreadableAnswer

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

log: structlog.typing.FilteringBoundLogger = structlog.get_logger(__name__)


class InstanceProblem(PlimsollError):
    """A problem of one instance that does not stop the others."""


def refer_to_instance(namespace: str, name: str) -> Ref:
    return Ref(kind="managedkafka", namespace=namespace, name=name or namespace)


class PerformedActions:
    """The actions about one instance in one cycle. `guard`: why nothing may be done; None: it may."""

    def __init__(self, ref: Ref, guard: Reason | None) -> None:
        self.ref = ref
        self._guard = guard
        self.outcomes: list[Outcome] = []
        self.not_done: list[NotDone] = []
        self.refusal = ""
        """What the API server answered to an object that it does not take."""

    async def perform(
        self, verb: str, target: Ref, reason: Reason, call: Callable[[], Coroutine[Any, Any, object]]
    ) -> bool:
        """Whether it was done. Errors of the connection are raised; a refusal of the server is remembered."""
        action = Action(verb=verb, target=target, reason=reason, concerns=(self.ref,))
        if self._guard is not None:
            self.outcomes.append(Outcome(action=action, result=Result.HELD_BACK, reason=self._guard))
            return False
        try:
            await call()
        except NotAllowed:
            raise
        except Conflict as error:
            self._fail(action, Result.OVERTAKEN, error)
            return False
        except (ApiError, UnreadableAnswer, InstanceProblem) as error:
            self._fail(action, Result.FAILED, error)
            self.refusal = str(error)
            return False
        self.outcomes.append(Outcome(action=action, result=Result.DONE))
        return True

    def keep(self, what: str, reason: Reason) -> None:
        """Something that is considered and not done."""
        self.not_done.append(NotDone(what=what, about=(self.ref,), reason=reason))

    def _fail(self, action: Action, result: Result, error: PlimsollError) -> None:
        self.outcomes.append(
            Outcome(action=action, result=result, reason=Reason(code=type(error).__name__, message=str(error)))
        )
        log.info("agent.action_failed", action=str(action), problem=str(error))
