"""`plimsoll fleet validate-config`: checks the configuration files of the fleet manager."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any

import typer

from plimsoll.cli.shared.output import Output, OutputOption, echo_value

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from plimsoll.fleet.config.files import FleetFiles


class ScalingTypeOption(Enum):
    """How clusters come and go."""

    NONE = "none"
    MANUAL = "manual"
    AUTO = "auto"


def _declare_file(flag: str, what: str) -> Any:
    return typer.Option(f"--{flag}", help=f"File of {what}. Default: in --config-dir.", metavar="FILE")


def validate_config(
    *,
    config_dir: Annotated[
        str, typer.Option("--config-dir", help="Directory of the files that are not given by a flag.", metavar="DIR")
    ] = "config",
    scaling_type: Annotated[
        ScalingTypeOption,
        typer.Option("--dataplane-cluster-scaling-type", help="Decides which files are read."),
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
        bool, typer.Option("--enable-instance-limit-control", help="Read the quota list.")
    ] = False,
    enable_deny_list: Annotated[bool, typer.Option("--enable-deny-list", help="Read the deny list.")] = False,
    enable_access_list: Annotated[bool, typer.Option("--enable-access-list", help="Read the access list.")] = False,
    output: OutputOption = Output.TABLE,
) -> None:
    """
    Validate the configuration files of the fleet manager: one line per file, and one per mistake with its path.

    All mistakes of all files are reported at once. Exit code 0: the files are valid. 1: they are not. A missing file
    of reserved instances is only a warning; any other that is missing or unreadable gives exit code 2.

    \b
    Examples:
      plimsoll fleet validate-config --config-dir examples/fleet/config
      plimsoll fleet validate-config --config-dir examples/fleet/config --dataplane-cluster-scaling-type auto
    """
    from plimsoll.fleet.config import files, policy_documents
    from plimsoll.fleet.model.statuses import ScalingType

    given = {
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
    _validate(
        files.FleetFiles(
            scaling_type=ScalingType(scaling_type.value),
            directory=config_dir,
            paths={key: path for key, path in given.items() if path},
            enforces_quota=enable_instance_limit_control,
            uses_deny_list=enable_deny_list,
            uses_access_list=enable_access_list,
        ),
        output,
    )


def _validate(used: FleetFiles, output: Output) -> None:
    from plimsoll.fleet.config.files import InvalidConfiguration, read_configuration

    code = 0
    mistakes: Mapping[str, Sequence[Any]] = {used.get_path(key): () for key in used.list_used()}
    try:
        warnings: Mapping[str, Sequence[str]] = read_configuration(used).warnings
    except InvalidConfiguration as error:
        mistakes, warnings = error.mistakes, error.warnings
        code = 2 if error.unreadable else 1
    if output in {Output.JSON, Output.YAML}:
        echo_value(_build_data(mistakes, warnings), output)
    else:
        _print(mistakes, warnings, names_only=output is Output.NAME)
    if code:
        raise typer.Exit(code)


def _print(mistakes: Mapping[str, Sequence[Any]], warnings: Mapping[str, Sequence[str]], *, names_only: bool) -> None:
    for name, found in mistakes.items():
        if names_only:
            if found:
                typer.echo(name)
            continue
        for warning in warnings.get(name, ()):
            typer.echo(f"warning: {name}: {warning}", err=True)
        for mistake in found:
            typer.echo(f"{name}: {mistake}")
        if not found and not _is_absent(warnings.get(name, ())):
            typer.echo(f"{name}: ok")


def _is_absent(warnings: Sequence[str]) -> bool:
    return any(warning.startswith("is absent") for warning in warnings)


def _build_data(mistakes: Mapping[str, Sequence[Any]], warnings: Mapping[str, Sequence[str]]) -> dict[str, Any]:
    return {
        "valid": not any(mistakes.values()),
        "files": [
            {
                "file": name,
                "valid": not found,
                "mistakes": [{"path": mistake.path, "reason": mistake.reason} for mistake in found],
                "warnings": list(warnings.get(name, ())),
            }
            for name, found in mistakes.items()
        ],
    }
