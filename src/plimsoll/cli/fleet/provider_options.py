"""The options of `plimsoll run fleet` for its cluster provider: OCM, Cluster API, or clusters of a kubeconfig."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

if TYPE_CHECKING:
    from plimsoll.app.fleet.providers import ProviderOptions


def declare_secret(name: str, what: str) -> Any:
    return typer.Option(f"--{name}-file", help=f"File with {what}.", metavar="FILE")


def build_provider_options(
    *,
    ocm_base_url: Annotated[
        str, typer.Option("--ocm-base-url", help="OCM, which makes clusters. Default: none.", metavar="URL")
    ] = "",
    ocm_token_url: Annotated[
        str,
        typer.Option("--ocm-token-url", help="Where tokens for OCM come from.", metavar="URL"),
    ] = "",
    ocm_client_id_file: Annotated[str, declare_secret("ocm-client-id", "the client id for OCM")] = "",
    ocm_client_secret_file: Annotated[str, declare_secret("ocm-client-secret", "the client secret for OCM")] = "",
    aws_credentials_file: Annotated[str, declare_secret("aws-credentials", "the object that OCM gets as aws")] = "",
    gcp_credentials_file: Annotated[str, declare_secret("gcp-credentials", "the object that OCM gets as gcp")] = "",
    strimzi_operator_addon_id: Annotated[
        str, typer.Option("--strimzi-operator-addon-id", help="Add-on of OCM with the Kafka operator.", metavar="ID")
    ] = "managed-kafka",
    kas_fleetshard_addon_id: Annotated[
        str, typer.Option("--kas-fleetshard-addon-id", help="Add-on of OCM with the agent.", metavar="ID")
    ] = "kas-fleetshard-operator",
    cluster_logging_operator_addon_id: Annotated[
        str,
        typer.Option(
            "--cluster-logging-operator-addon-id", help="Add-on of OCM for logs. Default: none.", metavar="ID"
        ),
    ] = "",
    management_kubeconfig: Annotated[
        str,
        typer.Option("--management-kubeconfig", help="Cluster with Cluster API, which makes clusters.", metavar="FILE"),
    ] = "",
    cluster_class: Annotated[
        str,
        typer.Option(
            "--cluster-class",
            help="ClusterClass of regions that name none; their clusters are made by Cluster API.",
            metavar="[NAMESPACE/]NAME",
        ),
    ] = "",
    cluster_version: Annotated[
        str, typer.Option("--cluster-version", help="Kubernetes of these clusters, such as v1.34.0.", metavar="VERSION")
    ] = "",
    worker_class: Annotated[
        str, typer.Option("--worker-class", help="Class of machine deployments in the ClusterClass.", metavar="NAME")
    ] = "default-worker",
    standalone_kubeconfig: Annotated[
        str,
        typer.Option(
            "--standalone-kubeconfig", help="Kubeconfig with the contexts of standalone clusters.", metavar="FILE"
        ),
    ] = "",
    addon_manifests: Annotated[
        str,
        typer.Option(
            "--addon-manifests", help="Folder with the manifests that clusters get without OCM.", metavar="DIR"
        ),
    ] = "",
    kafka_domain_name: Annotated[
        str, typer.Option("--kafka-domain-name", help="Domain of clusters of Cluster API.", metavar="NAME")
    ] = "kafka.bf2.dev",
) -> ProviderOptions:
    """The providers that a user configured."""
    from plimsoll.app.fleet.kubernetes_providers import KubernetesProviderOptions
    from plimsoll.app.fleet.ocm_providers import DEFAULT_TOKEN_URL, OcmOptions
    from plimsoll.app.fleet.providers import ProviderOptions

    accounts = {"aws": aws_credentials_file, "gcp": gcp_credentials_file}
    ocm = OcmOptions(
        base_url=ocm_base_url,
        token_url=ocm_token_url or DEFAULT_TOKEN_URL,
        client_id_file=_find_path(ocm_client_id_file),
        client_secret_file=_find_path(ocm_client_secret_file),
        kafka_operator_addon_id=strimzi_operator_addon_id,
        agent_addon_id=kas_fleetshard_addon_id,
        logging_addon_id=cluster_logging_operator_addon_id,
        account_files={cloud: Path(file) for cloud, file in accounts.items() if file},
    )
    kubernetes = KubernetesProviderOptions(
        management_kubeconfig=management_kubeconfig,
        kubeconfig=standalone_kubeconfig,
        cluster_class=cluster_class,
        cluster_version=cluster_version,
        worker_class=worker_class,
        addon_manifests=_find_path(addon_manifests),
        domain=kafka_domain_name,
    )
    return ProviderOptions(ocm=ocm, kubernetes=kubernetes)


def _find_path(name: str) -> Path | None:
    return Path(name) if name else None
