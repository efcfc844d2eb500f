"""HTTP Basic authentication with Cruise Control's three roles, from a file `user: password,ROLE` as Jetty has it."""

from __future__ import annotations

import hmac
from base64 import b64decode
from http import HTTPStatus
from typing import TYPE_CHECKING

from plimsoll.core.errors import InvalidInput
from plimsoll.core.values import Value
from plimsoll.kafka.cruise_control.server.endpoints import Role

if TYPE_CHECKING:
    from pathlib import Path


class User(Value):
    """A user by name."""

    name: str
    password: str
    role: Role


class Denied(Value):
    """A request that is not allowed."""

    status: int
    message: str


class Authentication:
    """Knows the users. Without any, everybody is an administrator: the server then listens on loopback only."""

    def __init__(self, users: tuple[User, ...] = ()) -> None:
        self._users = {user.name: user for user in users}

    def identify(self, header: str | None) -> User | Denied:
        """The user of an Authorization header."""
        if not self._users:
            return User(name="", password="", role=Role.ADMIN)
        name, password = _read_basic(header or "")
        user = self._users.get(name)
        # Compared even for an unknown user, so that the time of the answer does not say whether a name exists.
        expected = user.password if user is not None else "\0"
        if hmac.compare_digest(password.encode(), expected.encode()) and user is not None:
            return user
        return Denied(status=HTTPStatus.UNAUTHORIZED, message="Unauthorized")


def authorize(user: User, role: Role) -> Denied | None:
    """None: the user may use an endpoint of that role."""
    if user.role >= role:
        return None
    return Denied(
        status=HTTPStatus.FORBIDDEN,
        message=f"Forbidden: user {user.name!r} has role {user.role.name}, this endpoint needs {role.name}",
    )


def read_users(path: Path) -> tuple[User, ...]:
    """The users of a credentials file: a line `user: password,ROLE` each. Raises `InvalidInput` with the line."""
    try:
        lines = path.read_text(encoding="utf-8").splitlines()
    except (OSError, UnicodeError) as error:
        raise InvalidInput(f"cannot be read: {error}", path=str(path)) from error
    users: dict[str, User] = {}
    for number, line in enumerate(lines, start=1):
        if not line.strip() or line.lstrip().startswith("#"):
            continue
        place = f"{path}:{number}"
        name, colon, rest = line.partition(":")
        password, comma, role = rest.strip().rpartition(",")
        if not colon or not comma or not name.strip():
            raise InvalidInput('must look like "user: password,ROLE"', path=place)
        if role.strip().upper() not in Role.__members__:
            raise InvalidInput(f"the role must be one of {', '.join(Role.__members__)}", path=place)
        if name.strip() in users:
            raise InvalidInput(f"user {name.strip()!r} is listed twice", path=place)
        users[name.strip()] = User(name=name.strip(), password=password, role=Role[role.strip().upper()])
    if not users:
        raise InvalidInput("has no users", path=str(path))
    return tuple(users.values())


def _read_basic(header: str) -> tuple[str, str]:
    scheme, _, encoded = header.strip().partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, password = b64decode(encoded.strip(), validate=True).decode().partition(":")
    except ValueError:
        return "", ""
    return name, password
