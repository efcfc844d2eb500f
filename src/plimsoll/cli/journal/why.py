"""`plimsoll why`: what was decided about a pod, a node, a node group or a TiDB cluster, and why; newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.journal.files import DataOption, journal_path, open_journal, read_ref
from plimsoll.cli.shared.connection import (
    Connection,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    ServerOption,
    run_with_client,
)
from plimsoll.cli.shared.output import Output, OutputOption, echo_value

if TYPE_CHECKING:
    from plimsoll.core.plans import Ref
    from plimsoll.journal.stories import Story
    from plimsoll.kube.client import Client

_SYSTEM = "kube-system"
_OF_TIDB = ("tidbclusterautoscaler", "tidbcluster")
_ADVICE = {
    "pod": "a pod is named here once the scheduler found no place for it, and once more when it has one; "
    "ask kubectl describe pod what the scheduler says of it now",
    "node": "the autoscaler names every node it looks at; kubectl get nodes tells whether this one is there",
    "request": "a request is named here when it is answered, refused or over; plimsoll requests describe tells where "
    "it stands now",
    "tidbclusterautoscaler": "it is named here when it changes a cluster, or leaves one as it is and why; its status "
    "and conditions tell how it stands now",
    "tidbcluster": "clusters are named here when a TidbClusterAutoScaler changes them or one beside them, or wanted to",
    "nodegroup": "every group that the autoscaler sees is named here; plimsoll nodes status lists them",
}


def why(
    thing: Annotated[
        str,
        typer.Argument(
            help="pod, node, nodegroup, request, tidbclusterautoscaler (ta) or tidbcluster (tc), as below.",
            metavar="KIND/[NAMESPACE/]NAME",
        ),
    ],
    *,
    data: DataOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: NamespaceOption = "",
    server: ServerOption = "",
    autoscaler_namespace: Annotated[
        str, typer.Option("--autoscaler-namespace", help="Where the autoscaler of the cluster runs.")
    ] = _SYSTEM,
    limit: Annotated[int, typer.Option("--limit", help="So many of the last stories.", min=1)] = 5,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Tell what was decided about one thing and why: what was done, what was not, and the reasons behind it.

    The answer comes from the journal in --data; with --kubeconfig, --context or --server, or where there is no journal,
    from the cluster, where the autoscaler keeps the last thing it said of each object.

    Exit 0 if something is known, 3 if not (with what to do), 2 for a name that cannot be, 4 if no cluster can be
    reached.

    \b
    Examples:
      plimsoll why pod/default/web-0
      plimsoll why node/workers-2 --limit 1
      plimsoll why nodegroup/workers -o json
      plimsoll why request/batch/training
      plimsoll why ta/prod/as1 --context prod
      plimsoll why tidbcluster/prod/db
      plimsoll why pod/web-0 -n shop --context prod
    """
    from plimsoll.runtime.clocks import RealClock

    ref = read_ref(thing, namespace=namespace)
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    if data or (not connection.options and journal_path(data).exists()):
        stories = _from_file(ref, data, limit=limit)
    else:
        is_silent = output in {Output.JSON, Output.YAML}
        stories = _from_cluster(ref, connection, autoscaler_namespace, is_silent=is_silent)
    match output:
        case Output.TABLE:
            from plimsoll.journal.rendering import harmless, why_lines

            typer.echo(harmless(str(ref)))
            for line in why_lines(stories, now=RealClock().now()):
                typer.echo(line)
        case Output.NAME:
            for story in stories:
                typer.echo(story.ref if story.number is None else f"entry/{story.number}")
        case _:
            from plimsoll.journal.rendering import why_data

            echo_value(why_data(stories), output)


def _from_file(ref: Ref, data: str, *, limit: int) -> list[Story]:
    from plimsoll.journal.entries import Query
    from plimsoll.journal.stories import Story

    with open_journal(data) as journal:
        found = journal.entries(Query(ref=ref, limit=limit))
        if not found:
            last = journal.entries(Query(limit=1))
            kept = f"its last entry is of {last[0].at:%Y-%m-%d %H:%M:%S} UTC" if last else "it is empty yet"
            raise _nothing(ref, f"in the journal {journal.file} ({kept})")
    return [Story.of_entry(entry, ref) for entry in found]


def _from_cluster(ref: Ref, connection: Connection, namespace: str, *, is_silent: bool) -> list[Story]:
    from plimsoll.journal.last_plans import read_last_plans
    from plimsoll.journal.stories import Story
    from plimsoll.nodes import permissions as nodes
    from plimsoll.tidb import permissions as tidb

    name = tidb.LAST_PLANS_MAP if ref.kind in _OF_TIDB else nodes.LAST_PLANS_MAP

    async def read(client: Client) -> dict[str, str] | None:
        from plimsoll.kube.errors import NotFound
        from plimsoll.objects.api.core import ConfigMap

        try:
            return (await client.get(ConfigMap, name, namespace=namespace)).data
        except NotFound:
            return None

    where = f"ConfigMap {namespace}/{name}"
    data = run_with_client(connection, read, is_silent=is_silent)
    if data is None:
        from plimsoll.journal.errors import NothingKnown

        look = "a single pass (--once) writes none" if ref.kind in _OF_TIDB else "plimsoll nodes status tells"
        raise NothingKnown(
            f"nothing is known about {ref}: there is no {where} in the cluster",
            hint="the autoscaler writes it when it has decided something (not in a dry run); does it run there? "
            f"{look}; --autoscaler-namespace names another namespace, --data a journal's directory",
        )
    said = read_last_plans(data).get(ref)
    if said is None:
        raise _nothing(ref, f"in {where} ({len(data)} things are named there, those of old are dropped)")
    return [Story.of_last_plan(said)]


def _nothing(ref: Ref, where: str) -> Exception:
    from plimsoll.journal.errors import NothingKnown

    return NothingKnown(f"nothing is known about {ref} {where}", hint=_ADVICE.get(ref.kind, "is the name right?"))
