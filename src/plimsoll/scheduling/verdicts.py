"""The answers of scheduling rules: the pod fits, or it does not, with the reason.

Expected outcomes are values: no rule raises because a pod does not fit or because an object is malformed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from plimsoll.scheduling.cluster_view import NodeState

UNSCHEDULABLE: Final = "Unschedulable"
UNRESOLVABLE: Final = "UnschedulableAndUnresolvable"


class Refusal(Value, frozen=True):
    """Why a rule refuses.

    `plugin` is kube-scheduler's name for the rule and `messages` are its texts, one per problem;
    `detail` adds what the texts leave out (which taint, how much cpu). `resolvable` means that other pods leaving the
    node could change the answer, so preemption may be tried.
    """

    plugin: str
    messages: tuple[str, ...]
    resolvable: bool = False
    detail: str = ""

    @property
    def code(self) -> str:
        """kube-scheduler's name for how final the answer is."""
        return UNSCHEDULABLE if self.resolvable else UNRESOLVABLE

    def __str__(self) -> str:
        text = ", ".join(self.messages)
        return f"{text}: {self.detail}" if self.detail else text


class Fits(Value, frozen=True, tag_field="verdict", tag="Fits"):
    """The pod can run on the node."""


class DoesNotFit(Value, frozen=True, tag_field="verdict", tag="DoesNotFit"):
    """The pod cannot run on the node; `reason` is the first rule that refused, in kube-scheduler's order."""

    reason: Refusal


Verdict = Fits | DoesNotFit

FITS: Final = Fits()


class Rule(Protocol):
    """A rule prepared for a pod and a view; it answers for any node of that view."""

    def refuse(self, place: NodeState) -> Refusal | None: ...


def refuse_malformed(plugin: str, problem: str) -> Refusal:
    """A malformed object is a refusal that names the field; other objects are not affected."""
    return Refusal(plugin=plugin, messages=(problem,))
