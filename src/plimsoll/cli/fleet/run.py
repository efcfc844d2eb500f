"""`plimsoll run fleet`: the fleet manager, until it is stopped, or for one pass of each worker."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.fleet.databases import find_database_url
from plimsoll.cli.fleet.provider_options import build_provider_options, declare_secret
from plimsoll.cli.fleet.validate_config import ScalingTypeOption
from plimsoll.cli.shared.controllers import DryRunOption, reconcile_once
from plimsoll.cli.shared.logs import log_events_to_stderr, log_to_stderr
from plimsoll.cli.shared.option_groups import takes_options
from plimsoll.cli.shared.output import Output, OutputOption, echo_value, read_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from plimsoll.app.fleet.providers import ProviderOptions
    from plimsoll.fleet.auth.claims import ClaimNames
    from plimsoll.fleet.workers.passes import PassResult


def _declare_file(flag: str, what: str) -> Any:
    return typer.Option(f"--{flag}", help=f"File of {what}. Default: in --config-dir.", metavar="FILE")


def _declare_issuer(group: str) -> Any:
    return typer.Option(
        f"--{group}-issuer", help=f"Issuer of tokens of {group} routes. Default: built in.", metavar="URL"
    )


def _declare_claim(name: str, what: str) -> Any:
    return typer.Option(f"--claim-{name}", help=f"Claim with {what}.", metavar="NAME")


@takes_options("providers_of_clusters", build_provider_options)
def fleet(
    *,
    config_dir: Annotated[
        str, typer.Option("--config-dir", help="Directory of the files that are not given by a flag.", metavar="DIR")
    ] = "config",
    scaling_type: Annotated[
        ScalingTypeOption, typer.Option("--dataplane-cluster-scaling-type", help="How clusters come and go.")
    ] = ScalingTypeOption.MANUAL,
    providers: Annotated[str, _declare_file("providers-config-file", "providers and regions")] = "",
    instance_types: Annotated[str, _declare_file("supported-kafka-instance-types-config-file", "instance types")] = "",
    dynamic_scaling: Annotated[str, _declare_file("dynamic-scaling-config-file", "dynamic scaling")] = "",
    node_prewarming: Annotated[str, _declare_file("node-prewarming-config-file", "reserved instances")] = "",
    dataplane_clusters: Annotated[str, _declare_file("dataplane-cluster-config-file", "manual clusters")] = "",
    quota_list: Annotated[str, _declare_file("quota-management-list-config-file", "quotas")] = "",
    deny_list: Annotated[str, _declare_file("deny-list-config-file", "users that are refused")] = "",
    access_list: Annotated[str, _declare_file("access-list-config-file", "organisations that are accepted")] = "",
    admin_authz: Annotated[str, _declare_file("admin-authz-config-file", "roles of administrators")] = "",
    enable_instance_limit_control: Annotated[
        bool, typer.Option("--enable-instance-limit-control", help="Enforce the quota list.")
    ] = False,
    enable_deny_list: Annotated[
        bool, typer.Option("--enable-deny-list", help="Refuse users of the deny list.")
    ] = False,
    enable_access_list: Annotated[
        bool, typer.Option("--enable-access-list", help="Accept only organisations of the access list.")
    ] = False,
    allow_developer_instance: Annotated[
        bool,
        typer.Option(
            "--allow-developer-instance/--no-allow-developer-instance",
            help="Offer developer instances without a quota.",
        ),
    ] = True,
    max_developer_instances: Annotated[
        int, typer.Option("--max-allowed-developer-instances", help="Developer instances per owner.", min=0)
    ] = 1,
    database_url: Annotated[
        str,
        typer.Option(
            "--database-url", help="sqlite:///FILE or postgresql://… Default: a file in --data.", metavar="URL"
        ),
    ] = "",
    database_url_file: Annotated[
        str, typer.Option("--database-url-file", help="File with the URL of the database.", metavar="FILE")
    ] = "",
    secrets_key_file: Annotated[
        str,
        typer.Option(
            "--secrets-key-file",
            help="File with the keys of stored secrets, ID:BASE64 per line. Default: in --data.",
            metavar="FILE",
        ),
    ] = "",
    data: Annotated[
        str, typer.Option("--data", help="Directory of what has no place of its own: database, keys.", metavar="DIR")
    ] = ".plimsoll",
    listen: Annotated[
        str, typer.Option("--listen", help="Address of the API.", metavar="HOST:PORT")
    ] = "127.0.0.1:8000",
    health_listen: Annotated[
        str, typer.Option("--health-listen", help="Address of /healthz, /livez and /readyz.", metavar="HOST:PORT")
    ] = "127.0.0.1:8083",
    metrics_listen: Annotated[
        str, typer.Option("--metrics-listen", help="Address of /metrics.", metavar="HOST:PORT")
    ] = "127.0.0.1:8080",
    public_host_url: Annotated[
        str,
        typer.Option("--public-host-url", help="URL of the API for clients. Default: that of --listen.", metavar="URL"),
    ] = "",
    browser_url: Annotated[
        str, typer.Option("--browser-url", help="URL of the page of a Kafka, as the API shows it.", metavar="URL")
    ] = "",
    public_issuer: Annotated[str, _declare_issuer("public")] = "",
    admin_issuer: Annotated[str, _declare_issuer("admin")] = "",
    agent_issuer: Annotated[str, _declare_issuer("agent")] = "",
    audience: Annotated[
        str, typer.Option("--audience", help="Audience that tokens must have.", metavar="NAME")
    ] = "plimsoll-fleet",
    jwks_url: Annotated[
        list[str] | None, typer.Option("--jwks-url", help="Keys of issuers, by URL.", metavar="URL")
    ] = None,
    jwks_file: Annotated[
        list[str] | None, typer.Option("--jwks-file", help="Keys of issuers, by file.", metavar="FILE")
    ] = None,
    claim_user: Annotated[list[str] | None, _declare_claim("user", "the user")] = None,
    claim_org: Annotated[list[str] | None, _declare_claim("org", "the organisation")] = None,
    claim_account: Annotated[list[str] | None, _declare_claim("account", "the account")] = None,
    claim_client: Annotated[list[str] | None, _declare_claim("client", "the client id of an agent")] = None,
    claim_roles: Annotated[list[str] | None, _declare_claim("roles", "the roles of an administrator")] = None,
    interval: Annotated[
        str,
        typer.Option("--reconciler-repeat-interval", help="Time between two passes of a worker.", metavar="DURATION"),
    ] = "30s",
    lease_duration: Annotated[
        str, typer.Option("--leader-lease-expiration-time", help="Duration of a worker's lease.", metavar="DURATION")
    ] = "1m",
    lease_interval: Annotated[
        str,
        typer.Option(
            "--leader-election-reconciler-repeat-interval",
            help="Time between two renewals; at most a third of the lease.",
            metavar="DURATION",
        ),
    ] = "15s",
    providers_of_clusters: ProviderOptions,
    image_pull_secret_file: Annotated[
        str, declare_secret("image-pull-secret", "the Docker configuration that clusters get")
    ] = "",
    poll_interval: Annotated[
        str, typer.Option("--kas-fleetshard-poll-interval", help="How often agents poll.", metavar="DURATION")
    ] = "15s",
    resync_interval: Annotated[
        str, typer.Option("--kas-fleetshard-resync-interval", help="How often agents report.", metavar="DURATION")
    ] = "60s",
    keep_ready: Annotated[
        bool,
        typer.Option(
            "--enable-ready-dataplane-clusters-reconcile/--no-enable-ready-dataplane-clusters-reconcile",
            help="Compare ready clusters with what they should be.",
        ),
    ] = True,
    max_removals: Annotated[
        int | None,
        typer.Option(
            "--max-cluster-removals-per-hour",
            help="Clusters whose deletion may begin per hour, by all processes. Default: no limit.",
            min=0,
        ),
    ] = None,
    once: Annotated[
        bool, typer.Option("--once", help="Run one pass of each worker, print the result and exit.")
    ] = False,
    dry_run: DryRunOption = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Manage a fleet of Kafka clusters: serve the REST API, place Kafkas, and create and delete clusters of regions.

    Clusters are made by OCM (--ocm-base-url) or by Cluster API (--management-kubeconfig with --cluster-class).
    Without a provider they are only registered.

    Several processes may share one database: each worker has a lease there, and one process at a time acts as it.
    --dry-run takes no lease; workers plan and report, and change nothing. The API works as always. --once serves
    nothing; its exit code is 1 if a pass failed, and 4 if the database cannot be reached.

    \b
    Examples:
      plimsoll run fleet --config-dir examples/fleet/config --dataplane-cluster-scaling-type auto
      plimsoll run fleet --config-dir examples/fleet/config --dry-run --once
      plimsoll run fleet --database-url-file /etc/fleet/database --secrets-key-file /etc/fleet/keys
      plimsoll run fleet --management-kubeconfig management.kubeconfig --cluster-class data-plane
    """
    from plimsoll.app.fleet.process import Addresses, FleetOptions, FleetProcess
    from plimsoll.app.fleet.service import ClusterSettings, ServiceSettings
    from plimsoll.fleet.auth.issuer import Realm
    from plimsoll.fleet.config import files, policy_documents
    from plimsoll.fleet.model.statuses import ScalingType
    from plimsoll.fleet.workers.leases import LeaseTimes
    from plimsoll.runtime.clocks import RealClock
    from plimsoll.runtime.entropy import SystemEntropy

    paths = {
        policy_documents.PROVIDERS: providers,
        policy_documents.INSTANCE_TYPES: instance_types,
        policy_documents.DYNAMIC_SCALING: dynamic_scaling,
        policy_documents.NODE_PREWARMING: node_prewarming,
        policy_documents.MANUAL_CLUSTERS: dataplane_clusters,
        files.QUOTA_LIST: quota_list,
        files.DENY_LIST: deny_list,
        files.ACCESS_LIST: access_list,
        files.ADMIN_ROLES: admin_authz,
    }
    issuers = {Realm.PUBLIC: public_issuer, Realm.ADMIN: admin_issuer, Realm.AGENT: agent_issuer}
    entropy = SystemEntropy()
    settings = ServiceSettings(
        holder=f"{_get_host_name()}-{entropy.generate_suffix(8)}",
        public_url=public_host_url or f"http://{listen}",
        period_s=_read_seconds(interval, "--reconciler-repeat-interval"),
        lease=LeaseTimes(
            duration_s=_read_seconds(lease_duration, "--leader-lease-expiration-time"),
            period_s=_read_seconds(lease_interval, "--leader-election-reconciler-repeat-interval"),
        ),
        dry_run=dry_run,
        audience=audience,
        claim_names=_build_claim_names(
            user=claim_user, organisation=claim_org, account=claim_account, client=claim_client, roles=claim_roles
        ),
        issuers={realm: issuer for realm, issuer in issuers.items() if issuer},
        browser_url=browser_url,
        clusters=ClusterSettings(
            removals_per_hour=max_removals,
            keeps_ready=keep_ready,
            poll_interval=_check_duration(poll_interval, "--kas-fleetshard-poll-interval"),
            resync_interval=_check_duration(resync_interval, "--kas-fleetshard-resync-interval"),
            has_logging=bool(providers_of_clusters.ocm.logging_addon_id),
            pull_secret=read_file(image_pull_secret_file).decode() if image_pull_secret_file else "",
        ),
    )
    options = FleetOptions(
        files=files.FleetFiles(
            scaling_type=ScalingType(scaling_type.value),
            directory=config_dir,
            paths={key: path for key, path in paths.items() if path},
            enforces_quota=enable_instance_limit_control,
            uses_deny_list=enable_deny_list,
            uses_access_list=enable_access_list,
            allow_developer_instances=allow_developer_instance,
            max_developer_instances=max_developer_instances,
        ),
        service=settings,
        data=Path(data),
        database_url=find_database_url(database_url, database_url_file),
        secrets_key_file=_find_path(secrets_key_file),
        jwks_urls=tuple(jwks_url or ()),
        jwks_files=tuple(map(Path, jwks_file or ())),
        addresses=Addresses(api=listen, health=health_listen, metrics=metrics_listen),
        providers=providers_of_clusters,
    )
    log_to_stderr() if once else log_events_to_stderr()
    process = FleetProcess(options, clock=RealClock(), entropy=entropy)
    for name, warnings in process.configuration.warnings.items():
        for warning in warnings:
            typer.echo(f"warning: {name}: {warning}", err=True)
    if options.database_url and options.secrets_key_file is None:
        typer.echo("warning: without --secrets-key-file no secrets are stored, so that no cluster is set up", err=True)
    if once:
        _print_results(reconcile_once(process, output), output)
    else:
        _run_until_stopped(process, options.addresses.api, dry_run=dry_run)


def _run_until_stopped(process: Any, address: str, *, dry_run: bool) -> None:
    import asyncio

    from plimsoll.runtime.signals import run_until_signalled

    async def run_process() -> None:
        async with process as running:
            mode = "dry run: workers change nothing" if dry_run else "workers act while they hold their leases"
            typer.echo(f"serving the fleet API on http://{address}, {mode}; Ctrl-C stops it", err=True)
            await running.run()

    if asyncio.run(run_until_signalled(run_process())) is not None:
        typer.echo("stopped", err=True)


def _build_claim_names(**given: list[str] | None) -> ClaimNames:
    from plimsoll.fleet.auth.claims import ClaimNames

    return ClaimNames(**{name: tuple(names) for name, names in given.items() if names})


def _find_path(name: str) -> Path | None:
    return Path(name) if name else None


def _check_duration(text: str, flag: str) -> str:
    """The text, as agents get it."""
    _read_seconds(text, flag)
    return text


def _read_seconds(text: str, flag: str) -> float:
    from plimsoll.core.errors import InvalidInput
    from plimsoll.core.value_parsing import read_duration_s

    seconds = read_duration_s(text)
    if seconds is None or seconds <= 0:
        raise InvalidInput(f'{text!r} is not a duration like "30s" or "1m"', path=flag)
    return seconds


def _get_host_name() -> str:
    import socket

    return socket.gethostname()


def _print_results(results: Sequence[PassResult], output: Output) -> None:
    from plimsoll.fleet.reporting.reporter import format_pass
    from plimsoll.journal.rendering import remove_control_characters

    match output:
        case Output.TABLE:
            for result in results:
                typer.echo(remove_control_characters(format_pass(result)))
            if not results:
                typer.echo("other processes lead all workers; nothing was done", err=True)
        case Output.NAME:
            for result in results:
                typer.echo(f"worker/{result.worker}")
        case _:
            echo_value([_build_data(result) for result in results], output)
    if not results or any(result.errors for result in results):
        raise typer.Exit(1)


def _build_data(result: PassResult) -> dict[str, Any]:
    import msgspec

    from plimsoll.fleet.reporting.reporter import format_pass

    return {
        "worker": result.worker,
        "sentence": format_pass(result),
        "errors": list(result.errors),
        "plan": msgspec.to_builtins(result.plan),
        "outcomes": msgspec.to_builtins(result.outcomes),
    }
