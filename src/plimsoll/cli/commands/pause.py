"""`plimsoll pause` and `plimsoll resume`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.shared.connection import (
    SYSTEM_NAMESPACE,
    Connection,
    ContextOption,
    ControllerNamespaceOption,
    KubeconfigOption,
    ServerOption,
    run_with_client,
)
from plimsoll.cli.shared.output import Output, OutputOption, echo_value

if TYPE_CHECKING:
    from plimsoll.kube.client import Client

FleetDatabaseOption = Annotated[
    str, typer.Option("--database-url", help="Database of a fleet manager, instead of a cluster.", metavar="URL")
]
_FLEET = "the fleet"


def pause(
    *,
    reason: Annotated[str, typer.Option("--reason", help="Reason and author, shown wherever an action is held.")] = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    server: ServerOption = "",
    database_url: FleetDatabaseOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Pause all controllers: they plan and report but do not act.

    Actions in progress are finished. The pause lasts until plimsoll resume, also over restarts, and applies to every
    controller in the namespace. A second pause replaces the reason. With --database-url it applies to the workers of
    that fleet manager, and to nothing else.

    \b
    Examples:
      plimsoll pause --reason "network maintenance until 14:00, Ada"
      plimsoll pause --context prod
      plimsoll pause --database-url sqlite:///.plimsoll/fleet.sqlite3 --reason "upgrade, Ada"
      plimsoll nodes status
    """
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    place = _FLEET if database_url else namespace
    before = _set_in_fleet(database_url, reason) if database_url else _set(connection, namespace, reason, output)
    message = f"paused in {place}" + (f": {reason.strip()}" if reason.strip() else "")
    _print({"paused": reason.strip() or "true", "before": before}, message, place, output)


def resume(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    server: ServerOption = "",
    database_url: FleetDatabaseOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Resume controllers after plimsoll pause.

    \b
    Examples:
      plimsoll resume
      plimsoll resume --kubeconfig ./cluster/kubeconfig
    """
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    place = _FLEET if database_url else namespace
    before = _set_in_fleet(database_url, None) if database_url else _set(connection, namespace, None, output)
    reason = "" if before in {"", "true"} else f" (it was: {before})"
    message = f"no longer paused in {place}{reason}" if before else f"was not paused in {place}"
    _print({"paused": "", "before": before}, message, place, output)


def _set_in_fleet(url: str, reason: str | None) -> str:
    """Pauses the workers of a fleet manager, or resumes them. Returns the pause before."""
    import asyncio

    from plimsoll.app.fleet.journal_reading import open_fleet_pause

    async def update_pause() -> str:
        with open_fleet_pause(url) as pause_store:
            return await pause_store.set_pause(None if reason is None else reason.strip() or "true")

    return asyncio.run(update_pause())


def _set(connection: Connection, namespace: str, reason: str | None, output: Output) -> str:
    from plimsoll.kube.errors import NotFound
    from plimsoll.operator.pause import set_pause

    async def update_pause(client: Client) -> str:
        return await set_pause(client, namespace, reason)

    try:
        return run_with_client(connection, update_pause, is_silent=output in {Output.JSON, Output.YAML})
    except NotFound as error:
        from plimsoll.core.errors import InvalidInput

        raise InvalidInput(f"{error}; name the namespace of the controllers", path="--namespace") from error


def _print(data: dict[str, str], sentence: str, namespace: str, output: Output) -> None:
    from plimsoll.journal.rendering import remove_control_characters

    match output:
        case Output.TABLE:
            typer.echo(remove_control_characters(sentence))
        case Output.NAME:
            typer.echo("configmap/plimsoll")
        case _:
            echo_value({"namespace": namespace, **data}, output)
