"""Names of objects on the command line, in every form in which a command or kubectl prints them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.core.plans import Ref

_KINDS = {
    **dict.fromkeys(("pod", "pods", "po"), "pod"),
    **dict.fromkeys(("node", "nodes", "no"), "node"),
    **dict.fromkeys(("nodegroup", "nodegroups", "ng", "group"), "nodegroup"),
    **dict.fromkeys(("machinetype", "machinetypes"), "machinetype"),
    **dict.fromkeys(("request", "requests", "provisioningrequest", "provisioningrequests", "provreq"), "request"),
    "cluster": "cluster",
    **dict.fromkeys(("kafka", "kafkas", "k"), "kafka"),
    **dict.fromkeys(("kafkarebalance", "kafkarebalances", "kr"), "kafkarebalance"),
    **dict.fromkeys(("kafkanodepool", "kafkanodepools", "knp"), "kafkanodepool"),
    **dict.fromkeys(("broker", "brokers"), "broker"),
    **dict.fromkeys(("topic", "topics"), "topic"),
    **dict.fromkeys(("goal", "goals"), "goal"),
    **dict.fromkeys(("deployment", "deployments", "deploy"), "deployment"),
    **dict.fromkeys(("replicaset", "replicasets", "rs"), "replicaset"),
    **dict.fromkeys(("statefulset", "statefulsets", "sts"), "statefulset"),
    **dict.fromkeys(("daemonset", "daemonsets", "ds"), "daemonset"),
    **dict.fromkeys(("job", "jobs"), "job"),
    **dict.fromkeys(("cronjob", "cronjobs", "cj"), "cronjob"),
    **dict.fromkeys(("tidbclusterautoscaler", "tidbclusterautoscalers", "ta"), "tidbclusterautoscaler"),
    **dict.fromkeys(("tidbcluster", "tidbclusters", "tc"), "tidbcluster"),
}
_LIKE_KIND = 0.8
_CLUSTER_WIDE = frozenset(("node", "nodegroup", "machinetype", "cluster", "broker", "topic", "goal"))


def find_kind(written: str) -> str | None:
    """The kind that a word names: pods, deployment.apps or provreq, as kubectl and `-o name` print them."""
    return _KINDS.get(written.lower()) or _KINDS.get(written.lower().partition(".")[0])


def read_ref(text: str, *, namespace: str = "") -> Ref:
    """Read KIND/[NAMESPACE/]NAME, as commands and kubectl print it: deployment.apps/web, default/web-0 for a pod.

    Ids of node groups come from the cloud and may contain slashes.
    """
    from plimsoll.core.plans import Ref

    written, _, rest = text.partition("/")
    kind = find_kind(written)
    if not rest:
        raise InvalidInput(f"{text!r} is not KIND/NAME or KIND/NAMESPACE/NAME, e.g. pod/default/web-0")
    if kind is None and "/" not in rest and _is_namespace(written):
        return Ref(kind="pod", namespace=written, name=rest)
    if kind is None:
        near = difflib.get_close_matches(written.lower(), _KINDS, n=1)
        known = ", ".join(dict.fromkeys(_KINDS.values()))
        meant = f"; did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"unknown kind {written!r}{meant}; known are {known}", path=text)
    if kind in _CLUSTER_WIDE:
        return Ref(kind=kind, name=rest)
    first, slash, second = rest.partition("/")
    if "/" in second or (slash and not (first and second)):
        raise InvalidInput(f"a {kind} is named {kind}/NAME or {kind}/NAMESPACE/NAME", path=text)
    if slash and namespace and namespace != first:
        raise InvalidInput(f"is in namespace {first}, and -n says {namespace}; omit one of them", path=text)
    return Ref(kind=kind, namespace=first if slash else namespace or "default", name=second if slash else first)


def _is_namespace(written: str) -> bool:
    """Whether a word is more likely a namespace than a kind: commands print pods as NAMESPACE/NAME."""
    from plimsoll.objects.registry import KINDS

    is_like_kind = difflib.get_close_matches(written.lower(), _KINDS, n=1, cutoff=_LIKE_KIND)
    return KINDS.find_by_name(written) is None and not is_like_kind and written == written.lower()
