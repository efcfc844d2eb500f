"""An index on the shared informer of pods by the claims they use."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.kube.informer.events import Key
from plimsoll.scheduling.storage import list_claim_names

if TYPE_CHECKING:
    from plimsoll.kube.informer import Informer
    from plimsoll.objects.api.pods import Pod

_BY_CLAIM: Final = "volumes: pods by claim"


def index_pods_by_claim(pods: Informer[Pod]) -> None:
    """Asked for again, it is there already."""
    with suppress(InvalidInput):
        pods.add_index(_BY_CLAIM, list_claims)


def list_claims(pod: Pod) -> list[Key]:
    """The claims a pod uses, those made for it alone among them."""
    names = list_claim_names(pod)
    return [Key(pod.metadata.namespace, name) for name in dict.fromkeys(names)] if names else []


def list_pods_using(pods: Informer[Pod], claim: Key) -> list[Pod]:
    """In the order of their names."""
    return sorted(pods.cache.list_by_index(_BY_CLAIM, claim), key=lambda pod: pod.metadata.name)
