"""`--pd-token-file`, of `plimsoll run tidb` and `plimsoll tidb planner`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Final

import typer

from plimsoll.cli.shared.output import read_file
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from plimsoll.web.bearer_token import BearerToken

_FLAG: Final = "--pd-token-file"

TokenFileOption = Annotated[
    str,
    typer.Option(
        _FLAG,
        help="File with a bearer token, sent only to servers given by address.",
        metavar="FILE",
    ),
]


def read_token(name: str, *bases: str) -> BearerToken | None:
    """Read the token; None without a file. Its content is never printed."""
    from plimsoll.web.bearer_token import BearerToken

    if not name:
        return None
    try:
        text = read_file(name).decode("ascii")
    except UnicodeDecodeError as error:
        # Not chained: the error holds the bytes.
        raise InvalidInput(f"{name} has no token: byte {error.start} is not ASCII", path=_FLAG) from None
    return BearerToken(text, bases=bases, path=_FLAG)
