"""The HTTP side of the built-in issuer: discovery documents, keys, and client credentials for agents.

The clients are the agents of clusters: client id and secret are columns of the cluster's row.
"""

from __future__ import annotations

import binascii
import hmac
from base64 import b64decode
from http import HTTPStatus
from typing import TYPE_CHECKING, Final, Protocol
from urllib.parse import parse_qsl, unquote_plus

from starlette.applications import Starlette
from starlette.routing import Route

from plimsoll.fleet.auth.issuer import AGENT_LIFETIME_S, Realm, build_issuer_url
from plimsoll.fleet.auth.key_sets import ALGORITHM
from plimsoll.web.bodies import BodyRefused, read_body
from plimsoll.web.responses import JSON, PageResponse, build_json_response

if TYPE_CHECKING:
    from starlette.requests import Request

    from plimsoll.fleet.auth.issuer import Issuer
    from plimsoll.fleet.model.clusters import Cluster

DISCOVERY_PATH: Final = "/.well-known/openid-configuration"
_GRANT: Final = "client_credentials"
_MAX_FORM_BYTES: Final = 16 * 1024
_MOST_FIELDS: Final = 20


class ClientStore(Protocol):
    """The clients of the issuer."""

    async def find_client(self, client_id: str) -> Cluster | None: ...


def build_issuer_application(issuer: Issuer, clients: ClientStore) -> Starlette:
    """Serves all realms, each below its own name."""
    realms = _Realms(issuer, clients)
    return Starlette(
        routes=[
            *(Route(f"/{realm}{DISCOVERY_PATH}", realms.describe, methods=["GET"]) for realm in Realm),
            *(Route(f"/{realm}/keys", realms.publish_keys, methods=["GET"]) for realm in Realm),
            Route(f"/{Realm.AGENT}/token", realms.issue_token, methods=["POST"]),
        ]
    )


class _Realms:
    def __init__(self, issuer: Issuer, clients: ClientStore) -> None:
        self._issuer = issuer
        self._clients = clients

    async def describe(self, request: Request) -> PageResponse:
        """The discovery document of OpenID Connect."""
        realm = Realm(request.url.path.removesuffix(DISCOVERY_PATH).rsplit("/", 1)[-1])
        url = build_issuer_url(self._issuer.base_url, realm)
        document: dict[str, object] = {
            "issuer": url,
            "jwks_uri": f"{url}/keys",
            "id_token_signing_alg_values_supported": [ALGORITHM],
            "response_types_supported": ["token"],
            "subject_types_supported": ["public"],
        }
        if realm is Realm.AGENT:
            document |= {
                "token_endpoint": f"{url}/token",
                "grant_types_supported": [_GRANT],
                "token_endpoint_auth_methods_supported": ["client_secret_post", "client_secret_basic"],
            }
        return build_json_response(document)

    async def publish_keys(self, _request: Request) -> PageResponse:
        return PageResponse(self._issuer.keys.build_key_set(), content_type=JSON)

    async def issue_token(self, request: Request) -> PageResponse:
        """A token for client credentials (RFC 6749, 4.4)."""
        body = await read_body(request, max_bytes=_MAX_FORM_BYTES)
        if isinstance(body, BodyRefused):
            return _build_refusal("invalid_request", body.status)
        try:
            fields = dict(parse_qsl(body.decode("ascii"), max_num_fields=_MOST_FIELDS, errors="strict"))
        except ValueError:  # also undecodable text
            return _build_refusal("invalid_request", HTTPStatus.BAD_REQUEST)
        if fields.get("grant_type") != _GRANT:
            return _build_refusal("unsupported_grant_type", HTTPStatus.BAD_REQUEST)
        credentials = _read_basic(request) or (fields.get("client_id", ""), fields.get("client_secret", ""))
        if not await self._are_valid(*credentials):
            return _build_refusal("invalid_client", HTTPStatus.UNAUTHORIZED)
        token = self._issuer.issue_agent_token(credentials[0])
        return build_json_response({"access_token": token, "token_type": "Bearer", "expires_in": int(AGENT_LIFETIME_S)})

    async def _are_valid(self, client_id: str, secret: str) -> bool:
        """An empty id or secret matches no row, also not one whose agent has no account yet."""
        if not client_id or not secret or "\x00" in client_id:
            return False
        cluster = await self._clients.find_client(client_id)
        known = "" if cluster is None else cluster.client_secret
        return hmac.compare_digest(known.encode(), secret.encode()) and bool(known)


def _read_basic(request: Request) -> tuple[str, str] | None:
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        name, _, secret = b64decode(encoded.strip(), validate=True).decode().partition(":")
        return unquote_plus(name, errors="strict"), unquote_plus(secret, errors="strict")
    except (binascii.Error, ValueError):
        return "", ""


def _build_refusal(code: str, status: HTTPStatus) -> PageResponse:
    headers = {"www-authenticate": "Basic"} if status == HTTPStatus.UNAUTHORIZED else None
    return build_json_response({"error": code}, status, headers=headers)
