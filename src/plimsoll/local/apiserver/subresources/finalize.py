"""namespaces/finalize: the only way to change a namespace's finalizers, and so the last step of its deletion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver.registry import guaranteed_update
from plimsoll.local.apiserver.registry.identity import check_identity
from plimsoll.local.apiserver.subresources.body_decoding import decode_body

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


async def finalize(server: Server, call: RequestContext, body: Json) -> Json:
    """Give the namespace the finalizers of `body` and nothing else; the namespace afterwards."""
    sent = decode_body(call, body, api_version="v1", kind="Namespace")
    check_identity(sent, call)
    version = sent["metadata"].get("resourceVersion")
    finalizers = (sent.get("spec") or {}).get("finalizers")

    def change(current: Json) -> Json:
        kept = {name: value for name, value in (current.get("spec") or {}).items() if name != "finalizers"}
        return {
            **current,
            "metadata": {**current["metadata"], **({"resourceVersion": version} if version else {})},
            "spec": {**kept, "finalizers": finalizers} if finalizers else kept,
        }

    return await guaranteed_update.change_object(server, call, change, subresource="finalize")
