"""NamespaceLifecycle: rejects writes into a missing namespace and creations in a terminating one."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.admission.attributes import CREATE, DELETE, forbidden
from plimsoll.local.apiserver.storage import Key

if TYPE_CHECKING:
    from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
    from plimsoll.local.apiserver.storage import Store, Stored

_UNDELETABLE: Final = frozenset({"default", "kube-system", "kube-public"})


class NamespaceLifecycle:
    """Checks the namespace before all other plugins: in Kubernetes, too, it is a mutating plugin."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._last: tuple[Stored, str | None] | None = None

    def mutate(self, attempt: AdmissionAttributes) -> None:
        if attempt.resource.stored_as == "namespaces":
            if attempt.operation == DELETE and attempt.name in _UNDELETABLE:
                raise forbidden(attempt, "this namespace may not be deleted")
            return
        is_review = attempt.resource.plural == "localsubjectaccessreviews"
        if not attempt.namespace or attempt.operation == DELETE or is_review:
            return
        namespace = self._store.get(Key("namespaces", "", attempt.namespace))
        if namespace is None:
            raise status_errors.not_found(attempt.namespace, group="", resource="namespaces")
        if attempt.operation == CREATE and self._read_phase(namespace) == "Terminating":
            raise _terminating(attempt)

    def _read_phase(self, namespace: Stored) -> str | None:
        """Every creation asks twice, and most of them about the same namespace as the one before."""
        if self._last is None or self._last[0] is not namespace:
            self._last = (namespace, _parse_phase(namespace))
        return self._last[1]


class _Status(msgspec.Struct, gc=False):
    phase: str | None = None


class _Namespace(msgspec.Struct, gc=False):
    status: _Status | None = None


_decoder: Final = msgspec.json.Decoder(_Namespace)


def _parse_phase(namespace: Stored) -> str | None:
    """Read out of the bytes, and nothing else of them."""
    status = _decoder.decode(namespace.data).status
    return status.phase if status is not None else None


def _terminating(attempt: AdmissionAttributes) -> status_errors.StatusError:
    namespace = attempt.namespace
    cause = {
        "reason": "NamespaceTerminating",
        "message": f"namespace {namespace} is being terminated",
        "field": "metadata.namespace",
    }
    why = f"unable to create new content in namespace {namespace} because it is being terminated"
    return forbidden(attempt, why, causes=[cause])
