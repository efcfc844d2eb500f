"""Authorisation: role-based access control over the Role, ClusterRole and binding objects of the store.

`rbac.RbacAuthorizer` decides every request; `forbidden` builds the 403; `escalation.check_escalation` rejects grants
beyond the user's own permissions. Below them: `rules` (one rule), `policies` (all roles and bindings, indexed by
subject) and `policy_source` (where they come from, and when to read them again).
"""

from plimsoll.local.apiserver.authorization.escalation import check_escalation
from plimsoll.local.apiserver.authorization.forbidden import forbidden
from plimsoll.local.apiserver.authorization.rbac import RbacAuthorizer
from plimsoll.local.apiserver.authorization.rules import Rule

__all__ = ["RbacAuthorizer", "Rule", "check_escalation", "forbidden"]
