"""The provider's words in the registry's: thin on purpose, so that neither side follows the other's changes. Pure."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.nodes.cluster_state.observed import CloudError, ErrorClass, InstanceState, ObservedInstance

if TYPE_CHECKING:
    from plimsoll.nodes.providers.values import CallFailed, Instance, InstanceError


def observed_instance(instance: Instance) -> ObservedInstance:
    error = None if instance.error is None else _instance_error(instance.error)
    return ObservedInstance(id=instance.id, name=instance.name, state=_STATES.get(int(instance.state)), error=error)


def call_error(failure: CallFailed) -> CloudError:
    """A call that grew or made nothing, or of which nobody knows."""
    return CloudError(error_class=ErrorClass(int(failure.error_class)), code=str(failure.kind), message=failure.message)


def _instance_error(error: InstanceError) -> CloudError:
    return CloudError(error_class=ErrorClass(int(error.error_class)), code=error.code, message=error.message)


_STATES = {int(state): state for state in InstanceState}
"""A provider that does not say has no state here."""
