"""The response to a review of any kind: SubjectAccessReview, TokenReview and their like."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from plimsoll.local.apiserver.reviews.access_reviews import (
    review_access,
    review_own_access,
    review_own_rules,
)
from plimsoll.local.apiserver.reviews.bodies import decode_review, set_namespace
from plimsoll.local.apiserver.reviews.token_reviews import review_own_identity, review_token

if TYPE_CHECKING:
    from collections.abc import Callable

    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


def review(server: Server, call: RequestContext, body: Json) -> Json:
    """The answer to a review of the call's kind."""
    kind = call.resource.kind
    decoded = decode_review(body, api_version=call.resource.api_version, kind=kind)
    return _REVIEWS[kind](server, call, set_namespace(decoded, call.namespace))


_REVIEWS: Final[dict[str, Callable[[Server, RequestContext, Json], Json]]] = {
    "SelfSubjectAccessReview": review_own_access,
    "SubjectAccessReview": review_access,
    "LocalSubjectAccessReview": review_access,
    "SelfSubjectRulesReview": review_own_rules,
    "TokenReview": review_token,
    "SelfSubjectReview": review_own_identity,
}
