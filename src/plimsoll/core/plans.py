"""The result of every planner: actions, and a reason for each thing done and not done.

A plan is data. Planners build it, actuators carry it out, the journal stores it, and `plimsoll why`, Events and logs
render the same reasons from it, so that they cannot disagree. It holds no measured times: a replayed snapshot must give
the same bytes.
"""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads annotations at run time
from enum import Enum
from typing import Any, Final

import msgspec

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value


class Ref(Value, order=True):
    """Names one thing: `pod/default/web-0`, `node/n7`, `nodegroup/batch`."""

    kind: str
    name: str
    namespace: str = ""

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace}/{self.name}" if self.namespace else f"{self.kind}/{self.name}"

    @classmethod
    def parse(cls, text: str) -> Ref:
        """Parse KIND/NAME or KIND/NAMESPACE/NAME, as on the command line."""
        parts = text.split("/")
        if len(parts) not in {2, 3} or not all(parts):
            raise InvalidInput(
                f"{text!r} names no object; write KIND/NAME or KIND/NAMESPACE/NAME, e.g. pod/default/web-0"
            )
        return cls(kind=parts[0].lower(), namespace=parts[1] if len(parts) == 3 else "", name=parts[-1])


class Reason(Value):
    """A reason: a code for machines, a sentence for people, the facts, and the causes.

    `code` is CamelCase and stable (it becomes an Event's reason, a metric's label, a condition's reason); `message` has
    no full stop at its end; `facts` has plain JSON values, which the sentence may round.
    """

    code: str
    message: str
    facts: dict[str, Any] = {}
    because: tuple[Reason, ...] = ()

    def __str__(self) -> str:
        if not self.because:
            return self.message
        return f"{self.message} ({'; '.join(str(cause) for cause in self.because)})"


class Action(Value):
    """An action. Its `precondition` must still hold when it is executed: actuators check it, then act.

    An action is idempotent by its form: "size 5, if the size is 3", never "2 more".
    """

    verb: str
    target: Ref
    reason: Reason
    arguments: dict[str, Any] = {}
    precondition: dict[str, Any] = {}
    concerns: tuple[Ref, ...] | msgspec.UnsetType = msgspec.UNSET
    """Further objects that it concerns. Omitted if empty."""

    @property
    def subjects(self) -> tuple[Ref, ...]:
        """All references by which the action is found."""
        return (self.target,) if self.concerns is msgspec.UNSET else (self.target, *self.concerns)

    def __str__(self) -> str:
        return f"{self.verb} {self.target}{_join_arguments(self.arguments)}: {self.reason}"


class NotDone(Value):
    """A considered action that is not taken, with its reason: "node/n7 kept: pod db-0 has no controller".

    `unnamed` is the number of further objects that `about` does not name.
    """

    what: str
    about: tuple[Ref, ...]
    reason: Reason
    unnamed: int = 0
    concerns: tuple[Ref, ...] | msgspec.UnsetType = msgspec.UNSET
    """Objects that it is found by and that do not count: the workloads of pods. Omitted if empty."""

    @property
    def count(self) -> int:
        return len(self.about) + self.unnamed

    @property
    def subjects(self) -> tuple[Ref, ...]:
        """All references by which it is found."""
        return self.about if self.concerns is msgspec.UNSET else (*self.about, *self.concerns)

    def format_subjects(self) -> str:
        """The first objects that it is about, and how many more there are."""
        shown = ", ".join(str(ref) for ref in self.about[:_NAMED_AT_MOST])
        more = self.count - min(len(self.about), _NAMED_AT_MOST)
        if more:
            shown = f"{shown} and {more} more" if shown else f"{more}"
        return shown

    def __str__(self) -> str:
        return f"{self.format_subjects()} {self.what}: {self.reason}"


class Plan(Value):
    """The decisions of a planner about one snapshot; `budgets` are the limits it counted, for replay."""

    subsystem: str
    snapshot: int
    at: datetime
    actions: tuple[Action, ...] = ()
    not_done: tuple[NotDone, ...] = ()
    budgets: dict[str, int] = {}
    subject: Ref | msgspec.UnsetType = msgspec.UNSET
    """The object whose reconcile this is. Omitted if the plan is about a whole cluster."""

    def format_sentence(self, outcomes: tuple[Outcome, ...] | None = None) -> str:
        """One sentence about the loop. Actions that were held back or failed are not done.

        Actions without an outcome are planned. `outcomes` None: the sentence is about the plan alone.
        """
        ended = {encode(outcome.action): outcome.result for outcome in outcomes or ()}
        default = Result.DONE if outcomes is None else None
        results = [(action.verb, ended.get(encode(action), default)) for action in self.actions]
        done = _count_verbs([verb for verb, result in results if result in DONE_RESULTS])
        planned = _count_verbs([verb for verb, result in results if result is None])
        left = sum(not_done.count for not_done in self.not_done)
        parts = [done] if done else [] if planned else ["nothing done" if results else "nothing to do"]
        parts += [f"planned: {planned}"] if planned else []
        for stopped in _STOPPED:
            verbs = _count_verbs([verb for verb, result in results if result is stopped])
            parts += [f"{_RESULT_WORDS[stopped]}: {verbs}"] if verbs else []
        parts += [f"{left} unchanged"] if left else []
        return f"{self.subject or self.subsystem}: {'; '.join(parts)}"

    def format_lines(self) -> list[str]:
        """The whole plan for a terminal: what is done, then what is not, a line each."""
        return [f"+ {action}" for action in self.actions] + [f"- {not_done}" for not_done in self.not_done]

    def filter_by_ref(self, ref: Ref) -> Plan:
        """The part that concerns one thing: what `plimsoll why` shows."""
        return msgspec.structs.replace(
            self,
            actions=tuple(action for action in self.actions if ref in action.subjects),
            not_done=tuple(not_done for not_done in self.not_done if ref in not_done.subjects),
        )


class Result(Enum):
    """The outcome of an action."""

    DONE = "Done"
    ALREADY_SO = "AlreadySo"
    """The world was as wanted; nothing was called."""
    OVERTAKEN = "Overtaken"
    """The precondition no longer held: the next plan decides again."""
    HELD_BACK = "HeldBack"
    """The action guard (pause, dry run, removals per hour) stopped it."""
    PROPOSED = "Proposed"
    """The plan is a proposal: nothing is done before it is approved."""
    FAILED = "Failed"


class Outcome(Value):
    """The result of an action, with a reason unless it succeeded."""

    action: Action
    result: Result
    reason: Reason | None = None

    def __str__(self) -> str:
        ended = _RESULT_WORDS[self.result]
        return f"{self.action.verb} {self.action.target}: {ended}" + (f", {self.reason}" if self.reason else "")


_NAMED_AT_MOST: Final = 3
_RESULT_WORDS: Final = {
    Result.DONE: "done",
    Result.ALREADY_SO: "was so already",
    Result.OVERTAKEN: "overtaken by events",
    Result.HELD_BACK: "held back",
    Result.PROPOSED: "proposed",
    Result.FAILED: "failed",
}
DONE_RESULTS: Final = frozenset({Result.DONE, Result.ALREADY_SO})
"""Results after which the world is as the action wants it."""
_STOPPED: Final = (Result.HELD_BACK, Result.PROPOSED, Result.OVERTAKEN, Result.FAILED)
"""Results that change nothing."""
_ENCODER: Final = msgspec.json.Encoder(order="deterministic")


def encode(value: Value) -> bytes:
    """The same value gives the same bytes, on every machine and under every hash seed."""
    return _ENCODER.encode(value)


def _join_arguments(arguments: dict[str, Any]) -> str:
    return "".join(f" {key}={value}" for key, value in sorted(arguments.items()))


def _count_verbs(verbs: list[str]) -> str:
    return ", ".join(f"{verb} x{verbs.count(verb)}" for verb in dict.fromkeys(verbs))
