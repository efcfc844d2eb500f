"""Names of pending pods on the command line, in every form in which a command prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.core.plans import Ref
    from plimsoll.nodes.model.snapshot import PendingPods
    from plimsoll.simulation.plan.inputs import PlanInput

_OPTION = "--explain"


def find_pending_key(given: PlanInput, wanted: str) -> str:
    """The key of the pods that a name means: a pod, its workload or controller, or the request that it is planned for.

    A pod has its own name, or that of the entry it comes from: default/web-3 is one of default/web. Of several pods of
    a workload or request, the first is meant.
    """
    from plimsoll.app.references import find_kind_name, read_ref

    kind, slash, _ = wanted.partition("/")
    if any(wanted == pending.key for pending in given.snapshot.pending):
        return wanted
    if not slash or find_kind_name(kind) is None:
        return _find_by_name(given, wanted if slash else f"default/{wanted}")
    ref = read_ref(wanted)
    name = f"{ref.namespace}/{ref.name}"
    if ref.kind == "pod":
        return _find_by_name(given, name)
    found = [pending for pending in given.snapshot.pending if _is_of(pending, ref)]
    if not found:
        raise InvalidInput(f"no pending pod belongs to {ref}{_name_others(given, name)}", path=_OPTION)
    return min(pending.key for pending in found)


def _is_of(pending: PendingPods, ref: Ref) -> bool:
    from plimsoll.journal.workloads import list_workloads

    if ref.kind == "request":
        return pending.bundle == f"{ref.namespace}/{ref.name}"
    return ref in list_workloads(pending.pod.metadata)


def _find_by_name(given: PlanInput, name: str) -> str:
    keys = {pending.key for pending in given.snapshot.pending}
    if name in keys:
        return name
    entry, _, number = name.rpartition("-")
    if entry in keys and number.isdigit():
        return entry
    owned = [pending.key for pending in given.snapshot.pending if name in {find_owner(pending), pending.bundle}]
    if owned:
        return min(owned)
    if name in given.set_aside:
        raise InvalidInput(f"{name} is not planned: {given.set_aside[name]}", path=_OPTION)
    if any(name in {pending.key, request.name} for request in given.requests for pending in request.pods):
        message = f"{name} is of a request that only asks whether there is room; its condition says what is lacking"
        raise InvalidInput(message, path=_OPTION)
    raise InvalidInput(f"no pending pod is called {name}{_name_others(given, name)}", path=_OPTION)


def _name_others(given: PlanInput, name: str) -> str:
    import difflib

    keys = sorted(pending.key for pending in given.snapshot.pending)
    near = difflib.get_close_matches(name, keys, n=1)
    if near:
        return f"; did you mean {near[0]}?"
    return f"; {len(keys)} others wait, such as {keys[0]}" if keys else "; none waits"


def find_owner(pending: PendingPods) -> str:
    """The owner of the pods: the name of the entry, or the workload or controller of an existing pod."""
    from plimsoll.journal.workloads import list_workloads

    if not pending.names:
        return pending.key
    workloads = list_workloads(pending.pod.metadata)
    if workloads:
        return str(workloads[-1])
    refs = pending.pod.metadata.owner_references
    return next((f"{pending.pod.metadata.namespace}/{ref.name}" for ref in refs if ref.controller), pending.key)
