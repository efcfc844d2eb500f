"""ServiceAccount tokens: JSON Web Tokens that this server signs and that only this server needs to read.

They are signed with HS256 by a key of the data directory: the server is its own only verifier, so there is nobody a
public key could be given to, and the same claims always make the same token, which keeps seeded runs repeatable. The
signature is checked, over the text as it came, before a byte of the claims is looked at, and our own header is the only
one that is accepted, so no other algorithm can be talked into. Whether the account still exists is asked by `bearer`.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING, Final

import msgspec

from plimsoll.core.values import Value

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime

    from plimsoll.core.entropy import Entropy

ISSUER: Final = "https://kubernetes.default.svc"
SHORTEST_KEY_BYTES: Final = 32


class BoundObject(Value, frozen=True):
    """The object a token lives and dies with: `kind` is Pod, Secret or Node."""

    kind: str
    name: str
    uid: str


class Claims(Value, frozen=True):
    """What a token that carries our signature says."""

    namespace: str
    name: str
    uid: str
    audiences: tuple[str, ...]
    issued_at_s: int
    not_before_s: int
    expires_at_s: int
    token_id: str
    bound_to: tuple[BoundObject, ...] = ()

    def problem_at(self, now: datetime) -> str | None:
        """Why it does not count at that time, in Kubernetes' words.

        Kubernetes lets a minute pass after the end, for clocks that differ; here one clock issues and verifies.
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
    """The claims in the order in which Go writes them."""

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


class ServiceAccountTokens:
    """Issues tokens and reads its own; what another key signed is nothing to it."""

    def __init__(self, key: bytes, *, entropy: Entropy, issuer: str = ISSUER) -> None:
        if len(key) < SHORTEST_KEY_BYTES:
            raise ValueError(f"a signing key has at least {SHORTEST_KEY_BYTES} bytes, this one has {len(key)}")
        self._key = key
        self._entropy = entropy
        self.issuer = issuer
        key_id = hashlib.sha256(b"key id of " + key).hexdigest()[:16]
        self._header = _encoded(_encoder.encode({"alg": "HS256", "kid": key_id}))

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
            jti=self._entropy.uid(),
            kubernetes=_Private(namespace, serviceaccount=_Reference(name, uid), **references),
            nbf=now_s,
            sub=f"system:serviceaccount:{namespace}:{name}",
        )
        signed = f"{self._header}.{_encoded(_encoder.encode(payload))}"
        return f"{signed}.{self._signature(signed)}"

    def read(self, token: str) -> Claims | None:
        """The claims of a token that we signed, in time or not; none for any other text."""
        signed, _, signature = token.rpartition(".")
        header, _, payload = signed.partition(".")
        # The two texts are compared, not what they decode to: base64 has several spellings of the same bytes.
        if not token.isascii() or header != self._header or not self._is_ours(signed, signature):
            return None
        padding = "=" * (-len(payload) % 4)
        try:
            return _claims(_decoder.decode(base64.urlsafe_b64decode(payload + padding)))
        except (ValueError, msgspec.DecodeError):  # signed with our key, but not by this class
            return None

    def verify(self, token: str, *, now: datetime) -> Claims | None:
        """The claims of a token that we signed and that counts now."""
        claims = self.read(token)
        return claims if claims is not None and claims.problem_at(now) is None else None

    def _is_ours(self, signed: str, signature: str) -> bool:
        return hmac.compare_digest(self._signature(signed).encode(), signature.encode())

    def _signature(self, signed: str) -> str:
        return _encoded(hmac.digest(self._key, signed.encode(), "sha256"))


def _encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode("ascii")


def _claims(payload: _Payload) -> Claims:
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
