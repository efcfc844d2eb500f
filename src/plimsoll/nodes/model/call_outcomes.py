"""How a call to a cloud provider ended. Data only.

Failures that are expected of a cloud are values, not exceptions: the caller backs off, tries another group or reports.
"""

from __future__ import annotations

from enum import StrEnum

from plimsoll.core.values import Value
from plimsoll.nodes.model.instances import ErrorClass


class FailureKind(StrEnum):
    """Kinds of failed calls, by what the caller can do next."""

    OUT_OF_RESOURCES = "OutOfResources"
    """The cloud has no such machines, or no quota for them; another group may help. Nothing was changed."""
    REFUSED = "Refused"
    """The call is against the rules, or the group is not in the state that the call expects. Nothing was changed."""
    NO_SUCH_GROUP = "NoSuchGroup"
    FAILED = "Failed"
    """The provider reports an error. Nothing was changed."""
    HELD = "Held"
    """The call was not made, because the instance may be in use or the lists cannot be believed."""
    UNKNOWN = "Unknown"
    """No answer came, so the change may have happened. Read the state before calling again."""


class Done(Value):
    """The requested state holds: because of this call, or of an earlier one whose answer was lost."""


class CallFailed(Value):
    """A changing call that did not succeed."""

    kind: FailureKind
    message: str

    @property
    def error_class(self) -> ErrorClass:
        """The class that back-off distinguishes."""
        return ErrorClass.OUT_OF_RESOURCES if self.kind is FailureKind.OUT_OF_RESOURCES else ErrorClass.OTHER


class NotImplementedByProvider(Value):
    """An optional call that the provider, or this group of it, does not implement."""

    call: str
    """Its name in the provider interface of Cluster Autoscaler."""


Outcome = Done | CallFailed | NotImplementedByProvider


def get_failure(outcome: object) -> CallFailed | None:
    """The failure of a changing call; None after success. A call that is not implemented counts as refused."""
    match outcome:
        case CallFailed():
            return outcome
        case NotImplementedByProvider(call=call):
            return CallFailed(kind=FailureKind.REFUSED, message=f"the provider does not implement {call}")
        case _:
            return None
