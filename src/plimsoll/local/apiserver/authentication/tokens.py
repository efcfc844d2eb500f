"""ServiceAccount tokens: JSON Web Tokens that this server signs and verifies.

They are signed with HS256 and a key of the data directory: this server is the only verifier, so a public key would have
no reader, and the same claims always make the same token, which keeps seeded runs repeatable. The signature is checked
before the claims are parsed, and only our own header is accepted, so no other algorithm can be chosen. `bearer` checks
whether the account still exists.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING, Final

import jwt
import msgspec
from jwt.utils import base64url_encode

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.core.entropy import Entropy

ISSUER: Final = "https://kubernetes.default.svc"
SHORTEST_KEY_BYTES: Final = 32
_ALGORITHM: Final = "HS256"


class BoundObject(Value, frozen=True):
    """The object a token is bound to, a Pod, Secret or Node: without it the token is invalid."""

    kind: str
    name: str
    uid: str


class Claims(Value, frozen=True):
    """The claims of a token that this server signed."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    issued_at_s: int
    not_before_s: int
    expires_at_s: int
    token_id: str
    bound_to: tuple[BoundObject, ...] = ()

    def find_problem(self, now: datetime) -> str | None:
        """Why the token is not valid at that time, in Kubernetes' words.

        Kubernetes allows a minute of clock skew after the end; here one clock issues and verifies.
        """
        now_s = now.timestamp()
        if now_s < self.not_before_s:
            return "service account token is not valid yet"
        if now_s >= self.expires_at_s:
            return "service account token has expired"
        return None


class _Reference(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    name: str
    uid: str = ""


class _Private(msgspec.Struct, omit_defaults=True, forbid_unknown_fields=True):
    namespace: str
    node: _Reference | None = None
    pod: _Reference | None = None
    secret: _Reference | None = None
    serviceaccount: _Reference = msgspec.field(default_factory=lambda: _Reference(""))


class _Payload(msgspec.Struct, forbid_unknown_fields=True):
    """The claims, in the order in which Go writes them."""

    aud: tuple[str, ...]
    exp: int
    iat: int
    iss: str
    jti: str
    kubernetes: _Private = msgspec.field(name="kubernetes.io")
    nbf: int
    sub: str


_encoder: Final = msgspec.json.Encoder()
_decoder: Final = msgspec.json.Decoder(_Payload)
_jws: Final = jwt.PyJWS(algorithms=[_ALGORITHM])


class ServiceAccountTokens:
    """Issues tokens and reads its own; a token signed with another key is invalid."""

    def __init__(self, key: bytes, *, entropy: Entropy, issuer: str = ISSUER) -> None:
        if len(key) < SHORTEST_KEY_BYTES:
            raise ValueError(f"a signing key has at least {SHORTEST_KEY_BYTES} bytes, this one has {len(key)}")
        self._key = key
        self._entropy = entropy
        self.issuer = issuer
        self._key_id = hashlib.sha256(b"key id of " + key).hexdigest()[:16]
        self._header = self._sign(b"").partition(".")[0]

    def issue(  # noqa: PLR0913 - the claims of a token
        self,
        *,
        namespace: str,
        name: str,
        uid: str,
        audiences: Sequence[str],
        expires_in_s: int,
        now: datetime,
        bound_to: Sequence[BoundObject] = (),
    ) -> str:
        """A token for the account, valid from now on."""
        now_s = int(now.timestamp())
        references = {
            bound_object.kind.lower(): _Reference(bound_object.name, bound_object.uid) for bound_object in bound_to
        }
        payload = _Payload(
            aud=tuple(audiences),
            exp=now_s + expires_in_s,
            iat=now_s,
            iss=self.issuer,
            jti=self._entropy.generate_uid(),
            kubernetes=_Private(namespace, serviceaccount=_Reference(name, uid), **references),
            nbf=now_s,
            sub=f"system:serviceaccount:{namespace}:{name}",
        )
        return self._sign(_encoder.encode(payload))

    def read(self, token: str) -> Claims | None:
        """The claims of a token that this server signed, expired or not; None for any other text."""
        if not token.isascii() or token.partition(".")[0] != self._header:
            return None
        try:
            decoded = _jws.decode_complete(token, self._key, algorithms=[_ALGORITHM])
        except jwt.InvalidTokenError:
            return None
        # base64 has several spellings of the same bytes; the others are signed text, this one is not.
        if base64url_encode(decoded["signature"]).decode() != token.rpartition(".")[2]:
            return None
        try:
            return _build_claims(_decoder.decode(decoded["payload"]))
        except (ValueError, msgspec.DecodeError):  # signed with our key, but not by this class
            return None

    def verify(self, token: str, *, now: datetime) -> Claims | None:
        """The claims of a token that this server signed and that is valid now."""
        claims = self.read(token)
        return claims if claims is not None and claims.find_problem(now) is None else None

    def _sign(self, payload: bytes) -> str:
        return _jws.encode(payload, self._key, algorithm=_ALGORITHM, headers={"kid": self._key_id, "typ": None})


def _build_claims(payload: _Payload) -> Claims:
    private = payload.kubernetes
    bound = (("Pod", private.pod), ("Secret", private.secret), ("Node", private.node))
    return Claims(
        namespace=private.namespace,
        name=private.serviceaccount.name,
        uid=private.serviceaccount.uid,
        audiences=payload.aud,
        issued_at_s=payload.iat,
        not_before_s=payload.nbf,
        expires_at_s=payload.exp,
        token_id=payload.jti,
        bound_to=tuple(
            BoundObject(kind=kind, name=reference.name, uid=reference.uid)
            for kind, reference in bound
            if reference is not None
        ),
    )
