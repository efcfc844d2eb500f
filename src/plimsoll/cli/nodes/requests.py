"""`plimsoll requests …`: status of ProvisioningRequests."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.nodes.request_tables import format_request, format_request_table
from plimsoll.cli.shared.connection import (
    Connection,
    ContextOption,
    KubeconfigOption,
    NamespaceOption,
    ServerOption,
    run_with_client,
)
from plimsoll.cli.shared.output import Output, OutputOption, echo_parts, echo_value
from plimsoll.cli.shared.watching import ChangedRows, WatchOption, watch_changes

if TYPE_CHECKING:
    from plimsoll.core.clock import Clock
    from plimsoll.kube.client import Client
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
    from plimsoll.objects.api.resource import Resource
    from plimsoll.objects.codec.decoding import DecodedList

    Json = dict[str, Any]

_LOOKS_EVERY_S = 1.0
_DEFAULT_NAMESPACE = "default"

app = typer.Typer(no_args_is_help=True)

NameArgument = Annotated[str, typer.Argument(help="The ProvisioningRequest.", metavar="[NAMESPACE/]NAME")]


class Goal(Enum):
    """States that can be waited for."""

    PROVISIONED = "provisioned"
    ANSWERED = "answered"
    CONSUMED = "consumed"


@app.callback()
def requests() -> None:
    """
    Show ProvisioningRequests: capacity for groups of pods, provisioned atomically or only checked.

    \b
    Examples:
      plimsoll requests list -A
      plimsoll requests describe batch/training
      plimsoll requests wait batch/training --timeout 10m
    """


@app.command(name="list", short_help="List requests with their state.")
def list_requests(
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: NamespaceOption = "",
    server: ServerOption = "",
    everywhere: Annotated[bool, typer.Option("-A", "--all-namespaces", help="List all namespaces.")] = False,
    watch: WatchOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    List ProvisioningRequests with their state, nodes and message.

    States: New (not accepted yet), Accepted, Waiting (retried later), Provisioned, Consumed (its pods run),
    BookingExpired, Revoked (its nodes failed or were lost), Failed. Exit code 0, even if there are none.

    \b
    Examples:
      plimsoll requests list
      plimsoll requests list -A -o json
      plimsoll requests list --watch
    """
    connection = Connection(kubeconfig=kubeconfig, context=context, namespace=namespace, server=server)
    where = "" if everywhere else _get_namespace(connection)
    changed = ChangedRows()

    def read() -> list[Json]:
        return _list_reports(connection, where, is_silent=_is_for_programs(output))

    def show(found: list[Json]) -> None:
        _print_list(found, output, everywhere=everywhere, changed=changed if watch else None)

    if watch:
        watch_changes(read, show, select=_without_ages)
    else:
        show(read())


def _without_ages(found: list[Json]) -> list[Json]:
    return [{key: value for key, value in report.items() if key != "ageSeconds"} for report in found]


def _print_list(found: list[Json], output: Output, *, everywhere: bool, changed: ChangedRows | None) -> None:
    match output:
        case Output.TABLE:
            from plimsoll.journal.rendering import remove_control_characters

            table = format_request_table(found, everywhere=everywhere)
            echo_parts([table] if changed is None else changed.select(table), clean=remove_control_characters)
            if not found:
                typer.echo("there are no ProvisioningRequests" + ("" if everywhere else "; -A lists all namespaces"))
        case Output.NAME:
            for request in found:
                typer.echo(f"provisioningrequest/{request['namespace']}/{request['name']}")
        case _:
            echo_value(found, output)


@app.command(name="describe", short_help="Describe one request.")
def describe(
    name: NameArgument,
    *,
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: NamespaceOption = "",
    server: ServerOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Describe a request: state, attempts, node groups, cost, booking and what blocks it.

    plimsoll why request/NAMESPACE/NAME explains recent decisions. Exit code 0, or 3 if the request does not exist.

    \b
    Examples:
      plimsoll requests describe training
      plimsoll requests describe batch/training -o yaml
    """
    connection = Connection(kubeconfig=kubeconfig, context=context, namespace=namespace, server=server)
    where, called = _parse_name(name, connection)
    report = _report(connection, where, called, is_silent=_is_for_programs(output))
    if report is None:
        raise _build_not_found_error(where, called)
    match output:
        case Output.TABLE:
            from plimsoll.journal.rendering import remove_control_characters

            echo_parts(format_request(report), clean=remove_control_characters)
        case Output.NAME:
            typer.echo(f"provisioningrequest/{where}/{called}")
        case _:
            echo_value(report, output)


@app.command(name="wait", short_help="Wait until a request has its capacity.")
def wait(
    name: NameArgument,
    *,
    goal: Annotated[Goal, typer.Option("--for", help="State to wait for.")] = Goal.PROVISIONED,
    timeout: Annotated[str, typer.Option("--timeout", help="Maximum time to wait, e.g. 90s or 10m.")] = "10m",
    kubeconfig: KubeconfigOption = "",
    context: ContextOption = "",
    namespace: NamespaceOption = "",
    server: ServerOption = "",
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Wait until a request is provisioned, answered in any way, or consumed by its pods.

    Exit code 0: it is. 1: it never will be (failed, revoked, deleted), or the time is over; what blocks it is printed.
    3: the request does not exist.

    \b
    Examples:
      plimsoll requests wait batch/training
      plimsoll requests wait training -n batch --for consumed --timeout 30m
    """
    from plimsoll.core.errors import InvalidInput
    from plimsoll.core.value_parsing import read_duration_s
    from plimsoll.runtime.clocks import RealClock

    wait_s = read_duration_s(timeout)
    if wait_s is None or wait_s < 0:
        raise InvalidInput(f"{timeout!r} is not a duration; use e.g. 90s, 10m or 1h30m", path="--timeout")
    connection = Connection(kubeconfig=kubeconfig, context=context, namespace=namespace, server=server)
    where, called = _parse_name(name, connection)
    reports = _Waiting(where=where, called=called, goal=goal, wait_s=wait_s, clock=RealClock())
    report = run_with_client(connection, reports.read_last_state, is_silent=_is_for_programs(output))
    if report is None and not reports.was_seen:
        raise _build_not_found_error(where, called)
    _print_end(report, goal, f"{where}/{called}", output)


# ---- with the cluster


class _Waiting:
    """Polls until the state is reached, cannot be reached, or the time is over."""

    def __init__(self, *, where: str, called: str, goal: Goal, wait_s: float, clock: Clock) -> None:
        self._where = where
        self._called = called
        self._goal = goal
        self._wait_s = wait_s
        self._clock = clock
        self.was_seen = False

    async def read_last_state(self, client: Client) -> Json | None:
        """The last state; None: the request does not exist."""
        clock = self._clock
        over_s = clock.monotonic_s() + self._wait_s
        while True:
            report = await _read_request(client, self._where, self._called)
            if report is None or _is_reached(report, self._goal) or _is_final(report, self._goal):
                return report
            self.was_seen = True
            left_s = over_s - clock.monotonic_s()
            if left_s <= 0:
                return report
            await clock.sleep(min(_LOOKS_EVERY_S, left_s))


def _list_reports(connection: Connection, namespace: str, *, is_silent: bool) -> list[Json]:
    from plimsoll.journal.errors import NothingKnown
    from plimsoll.kube.errors import NotFound
    from plimsoll.kube.requests.options import Selection
    from plimsoll.nodes.requests.views import build_request_report
    from plimsoll.runtime.clocks import RealClock

    async def fetch_reports(client: Client) -> list[Json]:
        try:
            found: DecodedList[ProvisioningRequest] = await client.list(_get_resource(), Selection(namespace=namespace))
        except NotFound as error:
            raise NothingKnown(
                "the cluster has no ProvisioningRequest resource",
                hint="install it with kubectl apply -f deploy/crds, and run the autoscaler with "
                "--enable-provisioning-requests",
            ) from error
        line = sorted(found.items, key=lambda request: (request.metadata.namespace, request.metadata.name))
        return [build_request_report(request, now=RealClock().now()) for request in line]

    return run_with_client(connection, fetch_reports, is_silent=is_silent)


def _report(connection: Connection, namespace: str, name: str, *, is_silent: bool) -> Json | None:
    return run_with_client(connection, lambda client: _read_request(client, namespace, name), is_silent=is_silent)


async def _read_request(client: Client, namespace: str, name: str) -> Json | None:
    from plimsoll.kube.errors import NotFound
    from plimsoll.nodes.requests.views import build_request_report
    from plimsoll.runtime.clocks import RealClock

    try:
        found: ProvisioningRequest = await client.get(_get_resource(), name, namespace=namespace)
    except NotFound:
        return None
    return build_request_report(found, now=RealClock().now())


def _get_resource() -> Resource:
    from plimsoll.objects.api.provisioning_requests import ProvisioningRequest
    from plimsoll.objects.custom_kinds import OUR_KINDS

    found = OUR_KINDS.find_by_struct(ProvisioningRequest)
    assert found is not None, "it is one of our kinds"
    return found


def _get_namespace(connection: Connection) -> str:
    from plimsoll.runtime.clocks import RealClock

    return connection.namespace or connection.build_access(clock=RealClock()).namespace or _DEFAULT_NAMESPACE


def _parse_name(text: str, connection: Connection) -> tuple[str, str]:
    from plimsoll.app.references import find_kind_name
    from plimsoll.core.errors import InvalidInput

    kind, slash, rest = text.partition("/")
    is_kind = slash and find_kind_name(kind) == "request"
    where, slash, name = (rest if is_kind else text).rpartition("/")
    if not name or "/" in where or (slash and not where):
        raise InvalidInput(f"{text!r} is not NAME, NAMESPACE/NAME or request/NAMESPACE/NAME")
    if where and connection.namespace and where != connection.namespace:
        raise InvalidInput(f"{text!r} is not in namespace {connection.namespace}; omit -n or the part before /")
    return where or _get_namespace(connection), name


def _build_not_found_error(namespace: str, name: str) -> Exception:
    from plimsoll.journal.errors import NothingKnown

    return NothingKnown(
        f"ProvisioningRequest {namespace}/{name} does not exist", hint="plimsoll requests list -A lists all of them"
    )


# ---- output


def _is_for_programs(output: Output) -> bool:
    return output in {Output.JSON, Output.YAML}


def _is_reached(report: Json, goal: Goal) -> bool:
    from plimsoll.nodes.requests.status import RequestState

    provisioned = {RequestState.PROVISIONED, RequestState.CONSUMED, RequestState.BOOKING_EXPIRED}
    reached = {
        Goal.PROVISIONED: provisioned,
        Goal.ANSWERED: {*provisioned, RequestState.WAITING},
        Goal.CONSUMED: {RequestState.CONSUMED},
    }
    return report["state"] in reached[goal]


def _is_final(report: Json, goal: Goal) -> bool:
    from plimsoll.nodes.requests.status import RequestState

    over = {RequestState.FAILED, RequestState.REVOKED}
    is_unused = goal is Goal.CONSUMED and report["state"] == RequestState.BOOKING_EXPIRED
    return is_unused or report["state"] in over


def _print_end(report: Json | None, goal: Goal, name: str, output: Output) -> None:
    """Print the result and set the exit code."""
    from plimsoll.journal.rendering import remove_control_characters

    is_good = report is not None and _is_reached(report, goal)
    if report is not None and _is_for_programs(output):
        echo_value(report, output)
    elif report is not None and output is Output.NAME:
        typer.echo(f"provisioningrequest/{name}")
    if report is None:
        state = "was deleted"
    elif is_good or _is_final(report, goal):
        state = f"{report['state']}: {report['message']}"
    else:
        state = f"not {goal.value} in time, it is {report['state']}: {report['message']}"
    if output is Output.TABLE or not is_good:
        typer.echo(remove_control_characters(f"request {name} {state}"), err=not is_good)
    if not is_good:
        raise typer.Exit(1)
