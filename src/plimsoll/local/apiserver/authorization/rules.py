"""One rule of a role: what it allows, which other rules it covers, and its text in kube-apiserver's format.

A rule grants; nothing denies. `*` stands for everything in each of its lists. Pure.
"""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any, Final

from plimsoll.objects.schema.go_text import quote

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from plimsoll.local.apiserver.auth_types import Attributes

ALL: Final = "*"

# How many comparisons one question may cost. Real roles need thousands; a crafted one could ask for billions, by the
# product of its lists, and then counts as not covered.
MOST_COMPARISONS: Final = 500_000


class Rule:
    """A PolicyRule. Lists keep their order, because answers show it; sets beside them decide."""

    __slots__ = ("_groups", "_names", "_resources", "_verbs", "api_groups", "names", "resources", "urls", "verbs")

    def __init__(
        self,
        *,
        verbs: Iterable[str],
        api_groups: Iterable[str] = (),
        resources: Iterable[str] = (),
        names: Iterable[str] = (),
        urls: Iterable[str] = (),
    ) -> None:
        self.verbs = tuple(verbs)
        self.api_groups = tuple(api_groups)
        self.resources = tuple(resources)
        self.names = tuple(names)
        self.urls = tuple(urls)
        self._verbs = frozenset(self.verbs)
        self._groups = frozenset(self.api_groups)
        self._resources = frozenset(self.resources)
        self._names = frozenset(self.names)

    @classmethod
    def from_json(cls, rule: Rule | Mapping[str, Any]) -> Rule:
        """From the JSON of a role."""
        if isinstance(rule, Rule):
            return rule
        return cls(
            verbs=rule.get("verbs") or (),
            api_groups=rule.get("apiGroups") or (),
            resources=rule.get("resources") or (),
            names=rule.get("resourceNames") or (),
            urls=rule.get("nonResourceURLs") or (),
        )

    def __eq__(self, other: object) -> bool:
        return self._parts == other._parts if isinstance(other, Rule) else NotImplemented

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        return f"Rule({self.text})"

    @property
    def _parts(self) -> tuple[tuple[str, ...], ...]:
        return self.verbs, self.api_groups, self.resources, self.names, self.urls

    def allows(self, attributes: Attributes) -> bool:
        if attributes.verb not in self._verbs and ALL not in self._verbs:
            return False
        if not attributes.is_resource_request:
            return self._allows_url(attributes.path)
        return (
            (attributes.group in self._groups or ALL in self._groups)
            and self._allows_resource(attributes.resource, attributes.subresource)
            and (not self._names or attributes.name in self._names)
        )

    def _allows_resource(self, resource: str, subresource: str) -> bool:
        if ALL in self._resources:
            return True
        if not subresource:
            return resource in self._resources
        return f"{resource}/{subresource}" in self._resources or f"*/{subresource}" in self._resources

    def _allows_url(self, path: str) -> bool:
        return any(url == path or (url.endswith(ALL) and path.startswith(url.rstrip(ALL))) for url in self.urls)

    def covers(self, other: Rule) -> bool:
        """Whether everything `other` allows is allowed by this rule alone."""
        return (
            _holds(self._verbs, other.verbs)
            and _holds(self._groups, other.api_groups)
            and all(self._covers_resource(resource) for resource in other.resources)
            and self._covers_names(other)
            and all(self._allows_url(url) for url in other.urls)
        )

    def _covers_resource(self, resource: str) -> bool:
        if ALL in self._resources or resource in self._resources:
            return True
        _, slash, subresource = resource.partition("/")
        return bool(slash) and f"*/{subresource}" in self._resources

    def _covers_names(self, other: Rule) -> bool:
        return not self._names or (bool(other.names) and self._names.issuperset(other.names))

    @property
    def size(self) -> int:
        """How many single permissions it is."""
        for_resources = len(self.api_groups) * len(self.resources) * len(self.verbs) * max(1, len(self.names))
        return for_resources + len(self.urls) * len(self.verbs)

    def split_permissions(self) -> Iterator[Rule]:
        """The rule taken apart: one verb on one resource (of one name) of one group, or on one URL."""
        for group in self.api_groups:
            for resource in self.resources:
                for verb in self.verbs:
                    for name in self.names or (None,):
                        names = () if name is None else (name,)
                        yield Rule(verbs=(verb,), api_groups=(group,), resources=(resource,), names=names)
        for url in self.urls:
            for verb in self.verbs:
                yield Rule(verbs=(verb,), urls=(url,))

    @property
    def text(self) -> str:
        """`{APIGroups:[""], Resources:["pods"], Verbs:["get" "list"]}`."""
        parts = (
            ("APIGroups", self.api_groups),
            ("Resources", self.resources),
            ("NonResourceURLs", self.urls),
            ("ResourceNames", self.names),
            ("Verbs", self.verbs),
        )
        shown = (f"{name}:[{' '.join(map(quote, values))}]" for name, values in parts if values)
        return "{" + ", ".join(shown) + "}"


def _holds(own: frozenset[str], requested: Sequence[str]) -> bool:
    return ALL in own or own.issuperset(requested)


def find_uncovered(own: Sequence[Rule], requested: Iterable[Rule]) -> list[Rule]:
    """What of `requested` the rules `own` do not allow together, as single permissions."""
    missing: list[Rule] = []
    left = MOST_COMPARISONS
    each = max(1, len(own))
    for rule in requested:
        left -= each
        if left >= 0 and any(item.covers(rule) for item in own):
            continue
        left -= rule.size * each
        if left < 0:
            missing.append(rule)
            continue
        missing += [single for single in rule.split_permissions() if not any(item.covers(single) for item in own)]
    return missing


def compact(rules: Iterable[Rule]) -> list[Rule]:
    """Rules about one resource of one group joined to one rule, with all their verbs."""
    verbs: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    others: list[Rule] = []
    for rule in rules:
        if len(rule.api_groups) == len(rule.resources) == 1 and not rule.names and not rule.urls:
            verbs[rule.api_groups[0], rule.resources[0]] += rule.verbs
        else:
            others.append(rule)
    simple = [Rule(verbs=listed, api_groups=(group,), resources=(item,)) for (group, item), listed in verbs.items()]
    return [*others, *simple]
