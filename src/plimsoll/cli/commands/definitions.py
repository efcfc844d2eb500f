"""`plimsoll definitions`: the CustomResourceDefinitions that this program carries."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from plimsoll.cli.shared.connection import (
    Connection,
    ContextOption,
    KubeconfigOption,
    ServerOption,
    run_with_client,
)
from plimsoll.cli.shared.output import Output, OutputOption, echo_value

if TYPE_CHECKING:
    from plimsoll.kube.client import Client
    from plimsoll.kube.definition_installer import InstalledDefinition

app = typer.Typer(no_args_is_help=True)

STRIMZI: Final = frozenset(
    {
        "kafkas.kafka.strimzi.io",
        "kafkanodepools.kafka.strimzi.io",
        "kafkarebalances.kafka.strimzi.io",
        "strimzipodsets.core.strimzi.io",
    }
)
TIDB_OPERATOR: Final = frozenset({"tidbclusters.pingcap.com"})

WithoutStrimziOption = Annotated[
    bool, typer.Option("--without-strimzi", help="Also those of Strimzi, for clusters where it is not installed.")
]
WithoutTidbOperatorOption = Annotated[
    bool,
    typer.Option("--without-tidb-operator", help="Also that of TiDB Operator, for clusters where it is not installed."),
]


@app.callback()
def definitions() -> None:
    """
    The CustomResourceDefinitions that this program carries.

    \b
    Examples:
      plimsoll definitions apply --kubeconfig ./cluster/kubeconfig
      plimsoll definitions print > definitions.yaml
    """


@app.command(name="apply", short_help="Install and upgrade the definitions in a cluster.")
def apply(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    server: ServerOption = "",
    without_strimzi: WithoutStrimziOption = False,
    without_tidb_operator: WithoutTidbOperatorOption = False,
    adopt: Annotated[
        bool, typer.Option("--adopt", help="Also replace definitions that another project installed.")
    ] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Install the definitions that are missing, and upgrade older ones.

    No definition is ever deleted. One that a newer program installed is kept, so that a rollback loses no fields. The
    exit code is 1 if a definition could not be installed.

    \b
    Examples:
      plimsoll definitions apply
      plimsoll definitions apply --context prod --without-strimzi
    """
    import plimsoll
    from plimsoll.kube.definition_installer import Change, DefinitionInstaller
    from plimsoll.runtime.clocks import RealClock

    bodies = _select_bodies(without_strimzi=without_strimzi, without_tidb_operator=without_tidb_operator)

    async def install(client: Client) -> tuple[InstalledDefinition, ...]:
        installer = DefinitionInstaller(client, version=plimsoll.__version__, clock=RealClock(), is_adopting=adopt)
        return await installer.install(bodies)

    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    results = run_with_client(connection, install, is_silent=output in {Output.JSON, Output.YAML})
    _print_results(results, output)
    if any(result.change is Change.FAILED for result in results):
        raise typer.Exit(1)


@app.command(name="print", short_help="Print the definitions.")
def print_definitions(
    *,
    without_strimzi: WithoutStrimziOption = False,
    without_tidb_operator: WithoutTidbOperatorOption = False,
) -> None:
    """
    Print the definitions as YAML, for tools that install them.

    \b
    Examples:
      plimsoll definitions print
      plimsoll definitions print --without-strimzi > definitions.yaml
    """
    import yaml

    bodies = _select_bodies(without_strimzi=without_strimzi, without_tidb_operator=without_tidb_operator)
    typer.echo(yaml.safe_dump_all(bodies, sort_keys=False, width=120), nl=False)


def _select_bodies(*, without_strimzi: bool, without_tidb_operator: bool) -> list[dict[str, Any]]:
    from plimsoll.objects.validation import list_shipped_definitions

    foreign = (frozenset() if without_strimzi else STRIMZI) | (frozenset() if without_tidb_operator else TIDB_OPERATOR)
    return [shipped.body for shipped in list_shipped_definitions() if shipped.body["metadata"]["name"] not in foreign]


def _print_results(results: tuple[InstalledDefinition, ...], output: Output) -> None:
    match output:
        case Output.TABLE:
            for result in results:
                typer.echo(f"{result.name}: {result.change.value}" + (f" ({result.details})" if result.details else ""))
        case Output.NAME:
            for result in results:
                typer.echo(f"customresourcedefinition.apiextensions.k8s.io/{result.name}")
        case _:
            rows = [
                {"name": result.name, "change": result.change.name.lower(), "details": result.details}
                for result in results
            ]
            echo_value({"definitions": rows}, output)
