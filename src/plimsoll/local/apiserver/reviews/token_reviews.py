"""TokenReview and SelfSubjectReview: the user of a token, and the user of the request."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from plimsoll.local.apiserver import status_errors
from plimsoll.local.apiserver.authentication.bearer import Authenticated, TokenAuthenticator, build_user_info
from plimsoll.local.apiserver.reviews.bodies import build_response_head, set_managed_fields
from plimsoll.objects.api.meta import format_time

if TYPE_CHECKING:
    from plimsoll.local.apiserver.request.context import RequestContext
    from plimsoll.local.apiserver.server import Server

Json = dict[str, Any]


def review_token(server: Server, call: RequestContext, review: Json) -> Json:
    spec = review.get("spec") or {}
    token, audiences = spec.get("token", ""), spec.get("audiences") or ()
    if not token:
        raise status_errors.bad_request("token is required for TokenReview in authentication")
    assert isinstance(server.authenticator, TokenAuthenticator), "a token review needs an authenticator of tokens"
    found = server.authenticator.authenticate_token(token, audiences)
    status: Json
    if isinstance(found, Authenticated):
        status = {"authenticated": True, "user": build_user_info(found.user), "audiences": list(found.audiences)}
    else:
        status = {"user": {}, "error": found.message}
    known = set_managed_fields(review, call, now=server.clock.now())
    return {**build_response_head(known, call), "spec": spec, "status": status}


def review_own_identity(server: Server, call: RequestContext, _review: Json) -> Json:
    beginning = build_response_head({"metadata": {"creationTimestamp": format_time(server.clock.now())}}, call)
    return {**beginning, "status": {"userInfo": build_user_info(call.user)}}
