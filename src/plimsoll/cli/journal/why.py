"""`plimsoll why`: explains decisions about a pod, node, node group, request, TiDB or Kafka cluster, newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from plimsoll.cli.fleet.decisions import (
    DatabaseUrlFileOption,
    DatabaseUrlOption,
    FleetTokenOption,
    FleetUrlOption,
    build_source,
    read_local_decisions,
)
from plimsoll.cli.journal.clusters import ClusterOption, find_cluster_folder
from plimsoll.cli.journal.files import KUBECONFIG_FILE, ReadDataOption, find_journal, open_journal
from plimsoll.cli.journal.journal import ENTRY, print_entry
from plimsoll.cli.journal.unknown_objects import describe_unknown, find_same_named, is_existing
from plimsoll.cli.shared.connection import (
    Connection,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    ServerOption,
    run_with_client,
)
from plimsoll.cli.shared.output import Output, OutputOption, echo_parts, echo_value, find_text_width
from plimsoll.core.errors import InvalidInput

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

    from plimsoll.core.plans import Reason, Ref
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.kube.client import Client

_SYSTEM = "kube-system"
_FLEET = "fleet"
_SEARCHED = 500
"""Entries in which an object of the same name is looked for."""
_LOOK_UP_TIMEOUT_S = 2.0
_ADVICE_ON_PAUSE = "plimsoll resume ends the pause"
_ADVICE_ON_DRY_RUN = "a dry run writes decisions to its log and its journal (--data), not to the cluster"
_ADVICE_BESIDE_OTHERS = "plimsoll doctor --controller nodes names the other one and what to do about it"


def why(
    subject: Annotated[
        str,
        typer.Argument(
            help="A pod, a workload (deploy, sts, ds, rs, job, cronjob), a node, nodegroup, machinetype, request, "
            "tidbclusterautoscaler (ta) or tidbcluster (tc), a kafka, kafkarebalance (kr), kafkanodepool (knp), "
            "Kafka broker, topic or goal, or a journal entry. Of a fleet manager: a cluster, kafka or capacity.",
            metavar="KIND/[NAMESPACE/]NAME",
        ),
    ],
    name: Annotated[str, typer.Argument(help="The name, if KIND stands alone.", metavar="[NAME]")] = "",
    *,
    data: ReadDataOption = "",
    cluster: ClusterOption = "",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: NamespaceOption = "",
    server: ServerOption = "",
    autoscaler_namespace: Annotated[
        str, typer.Option("--autoscaler-namespace", help="Namespace of the autoscaler in the cluster.")
    ] = _SYSTEM,
    database_url: DatabaseUrlOption = "",
    database_url_file: DatabaseUrlFileOption = "",
    fleet: FleetUrlOption = "",
    fleet_token_file: FleetTokenOption = "",
    limit: Annotated[int, typer.Option("--limit", help="Maximum number of decisions.", min=1)] = 5,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Explain decisions about an object: what was done, what was not done, and why.

    The answer comes from the journal in --data. With --kubeconfig, --context or --server, or without a journal of the
    cluster that $KUBECONFIG names, it comes from the cluster, where the autoscaler keeps the last decision about each
    object. cluster/ID, kafka/ID and capacity/PROVIDER.REGION.TYPE are those of a fleet manager: of --database-url or
    --fleet, or of its database in --data. --cluster asks a cluster that the fleet of plimsoll up made.

    Exit code 0: something is known. 3: nothing is known (with a hint). 2: the name is invalid. 4: no cluster can be
    reached.

    \b
    Examples:
      plimsoll why pod/default/web-0
      plimsoll why deploy/web -n shop
      plimsoll why node/workers-2 --limit 1
      plimsoll why nodegroup/workers -o json
      plimsoll why request/batch/training
      plimsoll why ta/prod/as1 --context prod
      plimsoll why tidbcluster/prod/db
      plimsoll why kafka/prod/my-cluster
      plimsoll why broker/3
      plimsoll why pod/web-0 -n shop --context prod
      plimsoll why pod/web-0 --cluster 4p5p2r
      plimsoll why capacity/aws.us-east-1.standard
    """
    from plimsoll.app.references import read_ref
    from plimsoll.runtime.clocks import RealClock

    source = build_source(database_url, database_url_file, fleet, fleet_token_file)
    if cluster:
        data = find_cluster_folder(data, cluster)
    if subject.startswith(ENTRY):
        print_entry(subject, data, output, source)
        return
    named = f"{subject}/{name}" if name else subject
    connection = Connection(kubeconfig=kubeconfig, context=context, server=server)
    fleet_ref = source.find_ref(named)
    is_local = not source.is_given and not namespace and not connection.options
    if fleet_ref is not None:
        ref, decisions = fleet_ref, source.read_decisions(fleet_ref, limit=limit)
    elif is_local and (known := read_local_decisions(named, data, limit=limit)) is not None:
        ref, decisions = known
    else:
        ref = read_ref(named, namespace=namespace)
        decisions = _read(ref, connection, data, autoscaler_namespace, limit=limit, output=output)
    match output:
        case Output.TABLE:
            from plimsoll.journal.rendering import format_decisions, remove_control_characters

            lines = format_decisions(decisions, now=RealClock().now(), width=find_text_width())
            echo_parts(lines, title=remove_control_characters(str(ref)))
        case Output.NAME:
            for decision in decisions:
                typer.echo(decision.ref if decision.number is None else f"entry/{decision.number}")
        case _:
            from plimsoll.journal.rendering import build_decisions_data

            echo_value(build_decisions_data(decisions), output)


def _read(
    ref: Ref, connection: Connection, data: str, autoscaler_namespace: str, *, limit: int, output: Output
) -> list[ObjectDecision]:
    """From the journal in a file, or from the cluster."""
    from plimsoll.app.references import find_subsystem

    if find_subsystem(ref.kind).subsystem == _FLEET:
        raise InvalidInput(f"a {ref.kind} is of a fleet manager: give --database-url or --fleet", path=str(ref))
    place, is_silent = find_journal(data), output in {Output.JSON, Output.YAML}
    is_file_meant = not connection.options and place.path.exists() and not place.is_other_cluster
    if data or is_file_meant:
        return _read_from_file(ref, data, limit=limit)
    if place.is_other_cluster and not connection.options and not is_silent:
        typer.echo(f"{place.describe_other()}: that cluster is asked; --data reads the journal", err=True)
    return _read_from_cluster(ref, connection, autoscaler_namespace, is_silent=is_silent)


def _read_from_file(ref: Ref, data: str, *, limit: int) -> list[ObjectDecision]:
    from plimsoll.core.formatting import format_time
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.journal.entries import Query

    with open_journal(data) as journal:
        found = journal.list_entries(Query(ref=ref, limit=limit))
        if not found:
            last = journal.list_entries(Query(limit=_SEARCHED))
            kept = f"its last entry is of {format_time(last[0].at)}" if last else "it is empty yet"
            raise _build_nothing_known_error(
                ref,
                f"in the journal {journal.file} ({kept})",
                exists=_look_up(ref, journal.file.with_name(KUBECONFIG_FILE)),
                known={known for entry in last for known in entry.list_subjects()},
            )
    return [ObjectDecision.from_entry(entry, ref) for entry in found]


def _look_up(ref: Ref, kubeconfig: Path) -> bool | None:
    """Whether an object exists in the cluster whose journal this is; None: that cannot be seen now."""
    from plimsoll.core.errors import PlimsollError

    if not kubeconfig.exists():
        return None
    connection = Connection(kubeconfig=str(kubeconfig))
    try:
        return run_with_client(
            connection, lambda client: is_existing(client, ref), is_silent=True, timeout_s=_LOOK_UP_TIMEOUT_S
        )
    except PlimsollError:
        return None


def _read_from_cluster(ref: Ref, connection: Connection, namespace: str, *, is_silent: bool) -> list[ObjectDecision]:
    from plimsoll.app.references import find_subsystem
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.journal.last_plans import read_last_plans

    subsystem = find_subsystem(ref.kind)
    name, of_nodes = subsystem.last_plans, subsystem.subsystem == "nodes"

    async def read(client: Client) -> tuple[dict[str, str] | None, Reason | None, bool | None]:
        from plimsoll.kube.errors import NotFound
        from plimsoll.objects.api.core import ConfigMap

        try:
            found: dict[str, str] | None = (await client.get(ConfigMap, name, namespace=namespace)).data
        except NotFound:
            found = None
        if found is not None and ref in read_last_plans(found):
            return found, None, True
        pause_reason = await _read_pause_reason(client, namespace, of_nodes=of_nodes)
        return found, pause_reason, await is_existing(client, ref)

    where = f"ConfigMap {namespace}/{name}"
    data, pause_reason, exists = run_with_client(connection, read, is_silent=is_silent)
    if pause_reason is not None:
        return [_build_held_back(ref, pause_reason)]
    if data is None:
        from plimsoll.journal.errors import NothingKnown

        look = "see plimsoll nodes status" if of_nodes else "a single run (--once) writes none"
        raise NothingKnown(
            describe_unknown(ref, f"in the cluster: there is no {where}", exists=exists),
            hint="the autoscaler writes it with its first decision (not in a dry run); does it run there? "
            f"{look}; --autoscaler-namespace selects another namespace, --data the directory of a journal",
        )
    last_plans = read_last_plans(data)
    last_plan = last_plans.get(ref)
    if last_plan is None:
        raise _build_nothing_known_error(
            ref,
            f"in {where} ({len(data)} objects are recorded there, old ones are deleted)",
            exists=exists,
            known=last_plans,
        )
    return [ObjectDecision.from_last_plan(last_plan)]


async def _read_pause_reason(client: Client, namespace: str, *, of_nodes: bool) -> Reason | None:
    """What keeps the controllers from acting; None: nothing does. `of_nodes`: the node autoscaler, no other."""
    from plimsoll.kube.errors import ApiError
    from plimsoll.nodes.config.configure import read_runtime_config
    from plimsoll.nodes.reporting.status.configmap import OTHER_AUTOSCALER_ANNOTATION
    from plimsoll.nodes.reporting.status.reader import is_dry_run
    from plimsoll.nodes.running_permissions import STATUS_MAP
    from plimsoll.objects.api.core import ConfigMap
    from plimsoll.operator.pause import ActionGuard

    config = await read_runtime_config(client, namespace)
    try:
        status = await client.get(ConfigMap, STATUS_MAP, namespace=namespace)
    except ApiError:
        status = ConfigMap()
    return ActionGuard(
        dry_run=is_dry_run({}, config),
        paused=config.paused,
        other_autoscaler=status.metadata.annotations.get(OTHER_AUTOSCALER_ANNOTATION, "") if of_nodes else "",
    ).reason


def _build_held_back(ref: Ref, pause_reason: Reason) -> ObjectDecision:
    """The answer about an object that no decision names, while the controllers may not act."""
    from plimsoll.core.plans import NotDone, Reason
    from plimsoll.journal.decisions import ObjectDecision
    from plimsoll.operator.pause import DRY_RUN, PAUSED
    from plimsoll.runtime.clocks import RealClock

    advice = {DRY_RUN: _ADVICE_ON_DRY_RUN, PAUSED: _ADVICE_ON_PAUSE}.get(pause_reason.code, _ADVICE_BESIDE_OTHERS)
    reason = Reason(code=pause_reason.code, message=f"no decision names it yet; {advice}")
    held_back = NotDone(what=f"held back: {pause_reason}", about=(ref,), reason=reason)
    return ObjectDecision(ref=ref, at=RealClock().now(), subsystem="controllers", snapshot=0, not_done=(held_back,))


def _build_nothing_known_error(ref: Ref, where: str, *, exists: bool | None, known: Iterable[Ref]) -> Exception:
    from plimsoll.app.references import find_subsystem
    from plimsoll.journal.errors import NothingKnown

    problem = describe_unknown(ref, where, exists=exists, same_named=find_same_named(known, ref))
    kind = find_subsystem(ref.kind).find_kind(ref.kind)
    return NothingKnown(problem, hint="" if kind is None else kind.advice)
