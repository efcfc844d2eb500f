"""What `plimsoll why` says of an object without a decision: that it does not exist, is quiet, or is named otherwise."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

    from plimsoll.core.plans import Ref
    from plimsoll.kube.client import Client

_RESOURCES: Final = {"request": "provisioningrequest"}
"""Kinds whose resource has another name."""
_OUTSIDE: Final = frozenset(("nodegroup", "machinetype"))
"""Kinds of a cloud: the API server may not know them."""


async def is_existing(client: Client, ref: Ref) -> bool | None:
    """Whether an object exists in the cluster; None: it is no object of an API, or cannot be looked at."""
    from plimsoll.kube.errors import ApiError, NotFound
    from plimsoll.objects.custom_kinds import OUR_KINDS

    resource = OUR_KINDS.find_by_name(_RESOURCES.get(ref.kind, ref.kind))
    if resource is None or ref.kind in _OUTSIDE:
        return None
    try:
        await client.get(resource.struct, ref.name, namespace=ref.namespace)
    except NotFound:
        return False
    except ApiError:
        return None
    return True


def find_same_named(refs: Iterable[Ref], ref: Ref) -> list[Ref]:
    """The objects of the same kind and name in other namespaces."""
    return sorted({known for known in refs if (known.kind, known.name) == (ref.kind, ref.name) and known != ref})


def describe_unknown(ref: Ref, where: str, *, exists: bool | None, same_named: Iterable[Ref] = ()) -> str:
    """The sentence about an object that no decision names. `where` the decisions are: "in the journal X"."""
    meant = " or ".join(map(str, same_named))
    question = f"; did you mean {meant}?" if meant else ""
    state = {True: ": it exists, and no decision names it", False: ": it does not exist", None: ""}[exists]
    return f"nothing is known about {ref} {where}{state}{question}"
