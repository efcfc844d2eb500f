"""Static tokens: the administrator's, and those of a token file in kube-apiserver's format.

Tokens are stored by their digest, so neither a repr nor the time of a look-up reveals anything about them.
"""

from __future__ import annotations

import csv
import hashlib
import io
from typing import TYPE_CHECKING, Final

from plimsoll.core.errors import InvalidInput
from plimsoll.local.apiserver.auth_types import User
from plimsoll.local.apiserver.authorization.groups import AUTHENTICATED, MASTERS, UNAUTHENTICATED

if TYPE_CHECKING:
    from collections.abc import Mapping

_LEAST_COLUMNS: Final = 3


class StaticTokens:
    """Users by their token."""

    def __init__(self, users: Mapping[str, User]) -> None:
        self._users = {_digest(token): add_authenticated_group(user) for token, user in users.items() if token}

    def find(self, token: str) -> User | None:
        return self._users.get(_digest(token))


def build_administrator(name: str = "admin") -> User:
    """Whom the token of the data directory stands for: nothing is refused to them."""
    return User(name=name, groups=(MASTERS, AUTHENTICATED))


def read_token_file(text: str, *, path: str = "") -> dict[str, User]:
    """Lines of `token,user,uid,"group1,group2"`; the groups may be missing, and a later line wins over an earlier.

    Raises `InvalidInput` that names the line and never its content.
    """
    users: dict[str, User] = {}
    lines = csv.reader(io.StringIO(text), strict=True)
    try:
        for columns in lines:
            if not columns:
                continue
            if len(columns) < _LEAST_COLUMNS:
                problem = f"must have at least 3 columns (token, user name, user uid), found {len(columns)}"
                raise InvalidInput(f"line {lines.line_num}: {problem}", path=path)
            token, name, uid, *more = columns
            if token:
                groups = tuple(more[0].split(",")) if more and more[0] else ()
                users[token] = User(name=name, uid=uid, groups=groups)
    except csv.Error as error:
        raise InvalidInput(f"line {lines.line_num}: is not a comma-separated line: {error}", path=path) from None
    return users


def add_authenticated_group(user: User) -> User:
    """The user with `system:authenticated` added, unless the groups already contain one of these groups."""
    if AUTHENTICATED in user.groups or UNAUTHENTICATED in user.groups:
        return user
    return User(name=user.name, uid=user.uid, groups=(*user.groups, AUTHENTICATED), extra=user.extra)


def _digest(token: str) -> bytes:
    # A header may hold anything, also half of a surrogate pair.
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).digest()
