"""Names of objects, in every form in which a command, a page or kubectl prints them."""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.core.plans import Ref
from plimsoll.fleet import journal_kinds as fleet
from plimsoll.fleet.agent import journal_kinds as agent
from plimsoll.journal.decisions import index_words
from plimsoll.kafka import journal_kinds as kafka
from plimsoll.nodes import journal_kinds as nodes
from plimsoll.objects.registry import KINDS
from plimsoll.tidb import journal_kinds as tidb

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.journal.decisions import JournalKind, JournalKinds

_LIKE_KIND = 0.8


def list_kinds() -> tuple[JournalKinds, ...]:
    """What each subsystem declares. A kind of two subsystems is that of the first; the fleet's are named by ids."""
    return (nodes.KINDS, kafka.KINDS, tidb.KINDS, agent.KINDS, fleet.KINDS)


def find_subsystem(kind: str) -> JournalKinds:
    """The subsystem that decides about a kind."""
    return next(declared for declared in list_kinds() if declared.find_kind(kind) is not None)


def find_kind(written: str, words: Mapping[str, JournalKind]) -> JournalKind | None:
    """The kind that a word names: pods, deployment.apps or provreq, as kubectl and `-o name` print them."""
    return words.get(written.lower()) or words.get(written.lower().partition(".")[0])


def find_kind_name(written: str) -> str | None:
    """The name of the kind that a word means, of all kinds that are declared."""
    found = find_kind(written, index_words(list_kinds()))
    return None if found is None else found.name


def read_ref(text: str, *, namespace: str = "", declared: Sequence[JournalKinds] = ()) -> Ref:
    """Read KIND/[NAMESPACE/]NAME, as commands and kubectl print it: deployment.apps/web, default/web-0 for a pod.

    Ids of node groups come from the cloud and may contain slashes. `declared`: the kinds that may be named; empty: all.
    """
    written, _, rest = text.partition("/")
    words = index_words(declared or list_kinds())
    found = find_kind(written, words)
    if not rest:
        raise InvalidInput(f"{text!r} is not KIND/NAME or KIND/NAMESPACE/NAME, e.g. pod/default/web-0")
    if found is None and not declared and "/" not in rest and _is_namespace(written, words):
        return Ref(kind="pod", namespace=written, name=rest)
    if found is None:
        near = difflib.get_close_matches(written.lower(), words, n=1)
        known = ", ".join(dict.fromkeys(kind.name for kind in words.values()))
        meant = f"; did you mean {near[0]}?" if near else ""
        raise InvalidInput(f"unknown kind {written!r}{meant}; known are {known}", path=text)
    kind = found.name
    if not found.has_namespace:
        return Ref(kind=kind, name=rest)
    first, slash, second = rest.partition("/")
    if "/" in second or (slash and not (first and second)):
        raise InvalidInput(f"a {kind} is named {kind}/NAME or {kind}/NAMESPACE/NAME", path=text)
    if slash and namespace and namespace != first:
        raise InvalidInput(f"is in namespace {first}, and -n says {namespace}; omit one of them", path=text)
    return Ref(kind=kind, namespace=first if slash else namespace or "default", name=second if slash else first)


def _is_namespace(written: str, words: Mapping[str, JournalKind]) -> bool:
    """Whether a word is more likely a namespace than a kind: commands print pods as NAMESPACE/NAME."""
    is_like_kind = difflib.get_close_matches(written.lower(), words, n=1, cutoff=_LIKE_KIND)
    return KINDS.find_by_name(written) is None and not is_like_kind and written == written.lower()
