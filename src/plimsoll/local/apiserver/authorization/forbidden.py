"""The 403 error, with the message of kube-apiserver."""

from __future__ import annotations

from typing import Final

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.auth_types import Attributes, Decision
from plimsoll.objects.schema.go_text import quote

# Kubernetes escapes what a browser could render, in the sentence only.
_FOR_HTML: Final = str.maketrans({"&": "&amp;", "<": "&lt;", ">": "&gt;"})


def forbidden(attributes: Attributes, reason: Decision | str = "") -> status_errors.StatusError:
    """The 403 for a request that no rule allows; `reason` is the decision or its reason."""
    why = reason.reason if isinstance(reason, Decision) else reason
    sentence = _format_sentence(attributes).translate(_FOR_HTML)
    if why:
        sentence = f"{sentence}: {why}"
    if not attributes.is_resource_request:
        return status_errors.forbidden(f"forbidden: {sentence}", details={})
    return forbidden_object(sentence, group=attributes.group, resource=attributes.resource, name=attributes.name)


def forbidden_object(why: str, *, group: str, resource: str, name: str) -> status_errors.StatusError:
    """`roles.rbac.authorization.k8s.io "x" is forbidden: …`."""
    full = f"{resource}.{group}" if group else resource
    whom = f"{full} {quote(name)}" if name else full
    details = status_errors.build_details(name, group=group, kind=resource)
    return status_errors.forbidden(f"{whom} is forbidden: {why}", details=details)


def _format_sentence(attributes: Attributes) -> str:
    who = f"User {quote(attributes.user.name)} cannot {attributes.verb}"
    if not attributes.is_resource_request:
        return f"{who} path {quote(attributes.path)}"
    resource = attributes.resource
    if attributes.subresource:
        resource = f"{resource}/{attributes.subresource}"
    where = f"in the namespace {quote(attributes.namespace)}" if attributes.namespace else "at the cluster scope"
    return f"{who} resource {quote(resource)} in API group {quote(attributes.group)} {where}"
