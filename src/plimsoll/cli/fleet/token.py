"""`plimsoll fleet token`: a token of the built-in issuer, for trying the API and for small installations."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from plimsoll.cli.shared.output import Output, OutputOption, echo_value


def token(
    *,
    user: Annotated[str, typer.Option("--user", help="Name of the user.", metavar="NAME")],
    org: Annotated[
        str, typer.Option("--org", help="Organisation of the user; needed for public routes.", metavar="ID")
    ] = "",
    account: Annotated[str, typer.Option("--account", help="Account of the user.", metavar="ID")] = "",
    org_admin: Annotated[bool, typer.Option("--org-admin", help="The user administers the organisation.")] = False,
    admin: Annotated[
        bool, typer.Option("--admin", help="For routes of administrators instead of public ones.")
    ] = False,
    role: Annotated[
        list[str] | None,
        typer.Option("--role", help="Role of the administrator; repeatable. Default: all rights.", metavar="NAME"),
    ] = None,
    lifetime: Annotated[
        str, typer.Option("--lifetime", help="Time until it expires, at most 24h.", metavar="DURATION")
    ] = "1h",
    data: Annotated[Path, typer.Option("--data", help="Data directory of `plimsoll run fleet`.", metavar="DIR")] = Path(
        ".plimsoll"
    ),
    url: Annotated[
        str, typer.Option("--url", help="Address of the service, as its --public-host-url or --listen.", metavar="URL")
    ] = "http://127.0.0.1:8000",
    audience: Annotated[
        str, typer.Option("--audience", help="Audience of the token.", metavar="NAME")
    ] = "plimsoll-fleet",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Print a token of the built-in issuer of the fleet manager.

    The token is signed with the keys in the data directory of the service; they are created if they are missing.

    \b
    Examples:
      plimsoll fleet token --user alice --org 1
      plimsoll fleet token --user root --admin
      curl -H "Authorization: Bearer $(plimsoll fleet token --user alice --org 1)" http://127.0.0.1:8000/api/kafkas_mgmt/v1/kafkas
    """
    from plimsoll.core.errors import InvalidInput
    from plimsoll.core.value_parsing import InvalidValue, parse_duration_s
    from plimsoll.fleet.api.application import ISSUER_PATH
    from plimsoll.fleet.auth.issuer import Issuer, UserIdentity
    from plimsoll.fleet.auth.issuer_keys import KEYS_FILE, IssuerKeys
    from plimsoll.fleet.model.access import DEFAULT_ADMIN_ROLES
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy

    if not admin and not org:
        raise InvalidInput("public routes need an organisation; --admin is for routes of administrators", path="--org")
    if role and not admin:
        raise InvalidInput("roles are for administrators: add --admin", path="--role")
    try:
        lifetime_s = parse_duration_s(lifetime)
    except InvalidValue as error:
        raise InvalidInput(str(error), path="--lifetime") from error
    clock, entropy = RealClock(), SystemEntropy()
    keys = IssuerKeys(data / KEYS_FILE, clock=clock, entropy=entropy)
    issuer = Issuer(keys, base_url=f"{url.rstrip('/')}{ISSUER_PATH}", clock=clock, entropy=entropy, audience=audience)
    identity = UserIdentity(
        user=user,
        organisation=org,
        account=account,
        is_org_admin=org_admin,
        roles=tuple(role or DEFAULT_ADMIN_ROLES["DELETE"]),
    )
    issue = issuer.issue_admin_token if admin else issuer.issue_user_token
    written = issue(identity, lifetime_s=lifetime_s)
    if output in {Output.JSON, Output.YAML}:
        echo_value({"token": written, "expiresInSeconds": int(lifetime_s)}, output)
    else:
        typer.echo(written)
