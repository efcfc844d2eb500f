"""The check of privilege escalation at every write of a role or a binding.

In Kubernetes it is not a plugin but part of the storage of roles; it runs before everything that needs valid objects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.local.apiserver.authorization import RbacAuthorizer, check_escalation

if TYPE_CHECKING:
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.auth_types import Authorizer


class Escalation:
    """The escalation check, which needs an authorizer that knows rules; with any other it does nothing."""

    def __init__(self, authorizer: Authorizer) -> None:
        self._authorizer = authorizer if isinstance(authorizer, RbacAuthorizer) else None

    def validate(self, attempt: AdmissionAttributes) -> None:
        if self._authorizer is None or attempt.obj is None:
            return
        refusal = check_escalation(
            self._authorizer,
            attempt.user,
            attempt.obj,
            stored_as=attempt.resource.stored_as,
            namespace=attempt.namespace,
            old=attempt.old,
        )
        if refusal is not None:
            raise refusal
