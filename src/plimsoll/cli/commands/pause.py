"""`plimsoll pause` and `plimsoll resume`: the brake for the whole."""

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


def pause(
    *,
    reason: Annotated[str, typer.Option("--reason", help="Why, and who; it is told wherever something waits.")] = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    server: ServerOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Pull the brake: controllers go on looking and planning, and tell what they would do, but do nothing.

    What is under way comes to its end. It lasts until plimsoll resume, over restarts, for every controller that runs
    in the namespace; a second pause changes the reason.

    \b
    Examples:
      plimsoll pause --reason "network maintenance until 14:00, Ada"
      plimsoll pause --context prod
      plimsoll nodes status
    """
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    before = _set(connection, namespace, reason, output)
    told = f"paused in {namespace}" + (f": {reason.strip()}" if reason.strip() else "")
    _tell({"paused": reason.strip() or "true", "before": before}, told, namespace, output)


def resume(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: ControllerNamespaceOption = SYSTEM_NAMESPACE,
    server: ServerOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Let go of the brake that plimsoll pause pulled.

    \b
    Examples:
      plimsoll resume
      plimsoll resume --kubeconfig ./cluster/kubeconfig
    """
    before = _set(Connection(kubeconfig=kubeconfig, context=context, server=server), namespace, None, output)
    why = "" if before in {"", "true"} else f" (it was: {before})"
    told = f"no longer paused in {namespace}{why}" if before else f"was not paused in {namespace}"
    _tell({"paused": "", "before": before}, told, namespace, output)


def _set(connection: Connection, namespace: str, why: str | None, output: Output) -> str:
    from plimsoll.kube.errors import NotFound
    from plimsoll.operator.pause import set_pause

    async def work(client: Client) -> str:
        return await set_pause(client, namespace, why)

    try:
        return run_with_client(connection, work, is_silent=output in {Output.JSON, Output.YAML})
    except NotFound as error:
        from plimsoll.core.errors import InvalidInput

        raise InvalidInput(f"{error}; name the namespace in which Plimsoll runs", path="--namespace") from error


def _tell(data: dict[str, str], sentence: str, namespace: str, output: Output) -> None:
    from plimsoll.journal.rendering import harmless

    match output:
        case Output.TABLE:
            typer.echo(harmless(sentence))
        case Output.NAME:
            typer.echo("configmap/plimsoll")
        case _:
            echo_value({"namespace": namespace, **data}, output)
