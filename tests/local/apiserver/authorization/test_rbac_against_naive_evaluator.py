"""The index, the caches and the sets decide as the plain reading of the documentation does."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from plimsoll.local.apiserver.auth_types import Attributes, User
from tests.local.apiserver.authorization.builders import AuthorizerHarness, binding, cluster_binding, cluster_role, role

NAMES = ("a", "b")
NAMESPACES = ("n", "m")
VERBS = ("get", "list", "*")
GROUPS = ("", "apps", "*")
RESOURCES = ("pods", "pods/log", "*/log", "*")
URLS = ("/healthz", "/api/*", "*")
SUBJECTS = ("User u", "Group g", "ServiceAccount n/sa", "ServiceAccount sa")

several: dict[str, Any] = {"min_size": 1, "max_size": 2, "unique": True}
resource_rules = st.fixed_dictionaries(
    {
        "verbs": st.lists(st.sampled_from(VERBS), **several),
        "apiGroups": st.lists(st.sampled_from(GROUPS), **several),
        "resources": st.lists(st.sampled_from(RESOURCES), **several),
    },
    optional={"resourceNames": st.lists(st.sampled_from(("x", "y")), **several)},
)
url_rules = st.fixed_dictionaries(
    {
        "verbs": st.lists(st.sampled_from(VERBS), **several),
        "nonResourceURLs": st.lists(st.sampled_from(URLS), **several),
    }
)
rules = st.lists(resource_rules | url_rules, max_size=2)
labels = st.dictionaries(st.sampled_from(("l", "k")), st.just("1"), max_size=2)
names, namespaces = st.sampled_from(NAMES), st.sampled_from(NAMESPACES)
subjects = st.lists(st.sampled_from(SUBJECTS), max_size=2)
role_names = st.sampled_from(["Role/a", "Role/b", "ClusterRole/a", "ClusterRole/b"])

objects = st.one_of(
    st.builds(lambda name, own, ns: role(name, *own, namespace=ns), names, rules, namespaces),
    st.builds(
        lambda name, own, marks, picks: cluster_role(name, *own, labels=marks, picks=picks),
        names, rules, labels, st.none() | labels,
    ),
    st.builds(lambda name, to, who, ns: binding(name, to, *who, namespace=ns), names, role_names, subjects, namespaces),
    st.builds(lambda name, to, who: cluster_binding(name, to, *who), names, role_names, subjects),
)  # fmt: skip
users = st.sampled_from(
    [User(name="u", groups=("g",)), User(name="system:serviceaccount:n:sa"), User(name="x", groups=("u", "g"))]
)
wishes = st.one_of(
    st.builds(
        Attributes, user=users, verb=st.sampled_from(("get", "list", "watch")), group=st.sampled_from(("", "apps")),
        resource=st.sampled_from(("pods", "nodes")), subresource=st.sampled_from(("", "log")),
        namespace=st.sampled_from(("", *NAMESPACES)), name=st.sampled_from(("", "x")),
    ),
    st.builds(
        Attributes, user=users, verb=st.just("get"), path=st.sampled_from(("/healthz", "/api", "/api/v1")),
        is_resource_request=st.sampled_from((False,)),
    ),
)  # fmt: skip


def naive(everything: list[dict], asked: Attributes) -> bool:
    for item in everything:
        if item["kind"] not in ("RoleBinding", "ClusterRoleBinding"):
            continue
        place = item["metadata"].get("namespace", "")
        if place not in ("", asked.namespace) or (place == "" and item["kind"] == "RoleBinding"):
            continue
        if not any(applies(subject, asked.user, place) for subject in item["subjects"]):
            continue
        kind, name = item["roleRef"]["kind"], item["roleRef"]["name"]
        for other in everything:
            is_role = (other["kind"], other["metadata"]["name"]) == (kind, name)
            is_here = kind == "ClusterRole" or (place and other["metadata"].get("namespace") == place)
            if is_role and is_here and any(permits(item, asked) for item in effective(everything, other, frozenset())):
                return True
    return False


def applies(subject: dict, user: User, place: str) -> bool:
    if subject["kind"] == "User":
        return subject["name"] == user.name
    if subject["kind"] == "Group":
        return subject["name"] in user.groups
    namespace = subject.get("namespace") or place
    return bool(namespace) and user.name == f"system:serviceaccount:{namespace}:{subject['name']}"


def effective(everything: list[dict], obj: dict, seen: frozenset[str]) -> list[dict]:
    if "aggregationRule" not in obj:
        return obj["rules"]
    picks = obj["aggregationRule"]["clusterRoleSelectors"][0]["matchLabels"]
    seen |= {obj["metadata"]["name"]}
    found = []
    for other in everything:
        name = other["metadata"]["name"]
        if other["kind"] == "ClusterRole" and name not in seen and picks.items() <= other["metadata"]["labels"].items():
            found += effective(everything, other, seen)
    return found


def permits(obj: dict, asked: Attributes) -> bool:
    if not {asked.verb, "*"} & set(obj["verbs"]):
        return False
    if not asked.is_resource_request:
        urls = obj.get("nonResourceURLs", [])
        return any(url == asked.path or (url[-1] == "*" and asked.path.startswith(url[:-1])) for url in urls)
    wanted = f"{asked.resource}/{asked.subresource}" if asked.subresource else asked.resource
    matching = {wanted, "*"} | ({f"*/{asked.subresource}"} if asked.subresource else set())
    named = obj.get("resourceNames", [])
    return (
        bool({asked.group, "*"} & set(obj.get("apiGroups", [])))
        and bool(matching & set(obj.get("resources", [])))
        and (not named or asked.name in named)
    )


@settings(max_examples=200)
@given(st.lists(st.lists(objects, min_size=1, max_size=3), min_size=1, max_size=4), st.lists(wishes, max_size=4))
def test_decisions_equal_the_naive_evaluation_after_every_change(changes: list, asked: list):
    world = AuthorizerHarness()
    for change in changes:
        for item in change:
            world.put(item)
        everything = [
            item
            for resource in ("roles", "clusterroles", "rolebindings", "clusterrolebindings")
            for item in world.read(f"rbac.authorization.k8s.io/{resource}", None)
        ]
        for wish in asked:
            assert world.authorizer.decide(wish).allowed is naive(everything, wish)
