"""The response to a review of any kind: SubjectAccessReview, TokenReview and their like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.reviews.access_reviews import (
    self_subject_access_review,
    self_subject_rules_review,
    subject_access_review,
)
from plimsoll.local.apiserver.reviews.bodies import decode_review, with_namespace
from plimsoll.local.apiserver.reviews.token_reviews import self_subject_review, token_review

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


def review(server: Server, call: RequestContext, body: Json) -> Json:
    """The answer to a review of the call's kind."""
    kind = call.resource.kind
    asked = decode_review(body, api_version=call.resource.api_version, kind=kind)
    return _REVIEWS[kind](server, call, with_namespace(asked, call.namespace))


_REVIEWS: Final[dict[str, Callable[[Server, RequestContext, Json], Json]]] = {
    "SelfSubjectAccessReview": self_subject_access_review,
    "SubjectAccessReview": subject_access_review,
    "LocalSubjectAccessReview": subject_access_review,
    "SelfSubjectRulesReview": self_subject_rules_review,
    "TokenReview": token_review,
    "SelfSubjectReview": self_subject_review,
}
