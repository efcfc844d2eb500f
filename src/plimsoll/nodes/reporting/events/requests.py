"""Events about ProvisioningRequests and the pods that consume them (docs/design/nodes.md 2.4, 4.6). Pure.

Only written updates are reported: an Event must not say more than the status of the request.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from plimsoll.nodes.reporting.events.messages import NORMAL, WARNING, EventMessage, build_pod_reference
from plimsoll.nodes.requests.model import UpdateKind
from plimsoll.nodes.requests.status_updates import ACCEPTED_TEXT
from plimsoll.objects.api.meta import ObjectReference
from plimsoll.objects.api.provisioning_requests import REQUEST_GROUP

if TYPE_CHECKING:
    from collections.abc import Iterator

    from plimsoll.nodes.loop_result import LoopResult
    from plimsoll.nodes.requests.model import ConsumerWarning, RequestView

_NOT_BY_THEMSELVES: Final = (UpdateKind.ACCEPTED, UpdateKind.DELETED)
_BAD: Final = (UpdateKind.NOT_FOUND, UpdateKind.FAILED, UpdateKind.REVOKED, UpdateKind.ROLLED_BACK)
_API_VERSION: Final = f"{REQUEST_GROUP}/v1"
_KIND: Final = "ProvisioningRequest"


def build_request_events(loop: LoopResult) -> Iterator[EventMessage]:
    for update in loop.requests.news:
        if update.is_written and update.accepts:
            yield EventMessage(
                about=_build_request_reference(update.view), reason=UpdateKind.ACCEPTED.value, message=ACCEPTED_TEXT
            )
        if update.is_written and update.kind not in _NOT_BY_THEMSELVES:
            kind = WARNING if update.kind in _BAD else NORMAL
            yield EventMessage(
                about=_build_request_reference(update.view),
                type=kind,
                reason=update.kind.value,
                message=str(update.reason),
            )
    for warning in loop.requests.warnings:
        about = _find_object(warning)
        yield EventMessage(about=about, type=WARNING, reason=warning.reason.code, message=str(warning.reason))


def _find_object(warning: ConsumerWarning) -> ObjectReference:
    if warning.pod is not None:
        return build_pod_reference(warning.pod)
    if warning.view is not None:
        return _build_request_reference(warning.view)
    namespace, _, name = warning.request.partition("/")
    return ObjectReference(api_version=_API_VERSION, kind=_KIND, namespace=namespace, name=name)


def _build_request_reference(view: RequestView) -> ObjectReference:
    meta = view.request.metadata
    return ObjectReference(api_version=_API_VERSION, kind=_KIND, namespace=meta.namespace, name=meta.name, uid=meta.uid)
