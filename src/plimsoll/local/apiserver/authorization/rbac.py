"""The RBAC authorizer: whether a user may do something, by the roles and bindings of this moment.

It only reads; a change of a role takes effect with the next decision.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.core.values import Value
from plimsoll.local.apiserver.auth_types import Attributes, Decision, User
from plimsoll.local.apiserver.authorization import rules as ruling
from plimsoll.local.apiserver.authorization.groups import MASTERS
from plimsoll.local.apiserver.authorization.policies import format_missing_role
from plimsoll.local.apiserver.authorization.policy_source import ListedPolicies, StoredPolicies
from plimsoll.local.apiserver.authorization.rules import Rule

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from plimsoll.local.apiserver.authorization.policy_source import PolicySource, Read
    from plimsoll.local.apiserver.storage import Store


class Resolution(Value, gc=True):
    """The rules of a user, and what kept more of them from being found."""

    rules: list[Rule]
    problems: list[str] = []


class RbacAuthorizer:
    """Decides by role-based access control. `build` makes one that reads a store, and is the fast one."""

    def __init__(self, read: Read) -> None:
        """`read` gives the objects of a resource (named as the store names it) of all namespaces."""
        self._source: PolicySource = ListedPolicies(read)

    @classmethod
    def build(cls, store: Store) -> RbacAuthorizer:
        authorizer = cls(lambda _resource, _namespace: ())
        authorizer._source = StoredPolicies(store)
        return authorizer

    def decide(self, attributes: Attributes) -> Decision:
        """Allowed by the first rule that does; the reason of a denial only lists rules that could not be read."""
        if MASTERS in attributes.user.groups:
            return Decision(allowed=True)
        policies = self._source.get_current()
        problems: list[str] = []
        for grant in policies.grants(attributes.user, attributes.namespace):
            rules = policies.find_binding_rules(grant.binding)
            if rules is None:
                problems.append(format_missing_role(grant.binding))
            elif any(rule.allows(attributes) for rule in rules):
                return Decision(allowed=True, reason=f"RBAC: allowed by {grant.binding.format_reason(grant.subject)}")
        return Decision(allowed=False, reason=f"RBAC: {join_problems(problems)}" if problems else "")

    def resolve(self, user: User, namespace: str) -> Resolution:
        """Every rule that applies to a user in a namespace (empty: to the whole cluster)."""
        policies = self._source.get_current()
        rules: list[Rule] = []
        problems: list[str] = []
        for grant in policies.grants(user, namespace):
            found = policies.find_binding_rules(grant.binding)
            if found is None:
                problems.append(format_missing_role(grant.binding))
            else:
                rules += found
        return Resolution(rules=rules, problems=problems)

    def find_user_rules(self, user: User, namespace: str) -> list[Rule]:
        return self.resolve(user, namespace).rules

    def find_role_rules(self, kind: str, name: str, namespace: str) -> tuple[Rule, ...] | None:
        """The rules of a Role of that namespace or of a ClusterRole; none if there is no such role."""
        return self._source.get_current().find_role_rules(kind, name, namespace)

    def covers(self, user: User, rules: Iterable[Rule | Mapping[str, Any]], namespace: str) -> bool:
        """Whether the user may do all that these rules allow, in that namespace."""
        return not ruling.find_uncovered(self.find_user_rules(user, namespace), map(Rule.from_json, rules))


def join_problems(problems: Iterable[str]) -> str:
    """Several complaints as Go joins them: each once, in brackets when there are more than one."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"
