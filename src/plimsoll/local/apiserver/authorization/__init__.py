"""Who may do what: role-based access control over the Role, ClusterRole and binding objects of the store.

`rbac.RbacAuthorizer` is what the application asks for every request; `refusing.forbidden` is how it says no;
`escalation.check_escalation` keeps people from granting what they do not have. Below them: `rules` (one rule),
`policies` (all roles and bindings, indexed by subject) and `reading` (where they come from, and when to look again).
"""

from plimsoll.local.apiserver.authorization.escalation import check_escalation
from plimsoll.local.apiserver.authorization.forbidden import forbidden
from plimsoll.local.apiserver.authorization.rbac import RbacAuthorizer
from plimsoll.local.apiserver.authorization.rules import Rule

__all__ = ["RbacAuthorizer", "Rule", "check_escalation", "forbidden"]
