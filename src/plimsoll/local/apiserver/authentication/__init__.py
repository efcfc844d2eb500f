"""Authentication: bearer tokens of users and of ServiceAccounts, and impersonation.

`bearer.TokenAuthenticator` authenticates every request; `tokens` issues and verifies ServiceAccount tokens,
`static_tokens` holds the fixed ones (the administrator's and those of a token file), `impersonation` reads the
Impersonate headers. No token ever appears in a log, an error or a repr.
"""

from plimsoll.local.apiserver.authentication.bearer import (
    ANONYMOUS,
    Authenticated,
    TokenAuthenticator,
    Unauthenticated,
    build_user_info,
)
from plimsoll.local.apiserver.authentication.static_tokens import build_administrator, read_token_file
from plimsoll.local.apiserver.authentication.tokens import BoundObject, Claims, ServiceAccountTokens

__all__ = [
    "ANONYMOUS",
    "Authenticated",
    "BoundObject",
    "Claims",
    "ServiceAccountTokens",
    "TokenAuthenticator",
    "Unauthenticated",
    "build_administrator",
    "build_user_info",
    "read_token_file",
]
