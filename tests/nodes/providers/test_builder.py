"""The provider and the expander that flags name, and the error where they cannot be had."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import pytest

from plimsoll.core.errors import InvalidInput
from plimsoll.nodes.config.options import read_options
from plimsoll.nodes.providers.builder import ProviderDependencies, find_management_access, make_provider
from plimsoll.nodes.scaleup.grpc_expander_builder import make_expander
from plimsoll.runtime.clocks import RealClock
from tests.e2e.externalgrpc.memory_clouds import MemoryCloud

if TYPE_CHECKING:
    from pathlib import Path

    from tests.golden.reviewed_sentences import ReviewedSentences

KUBECONFIG = """
apiVersion: v1
kind: Config
current-context: management
contexts: [{name: management, context: {cluster: management}}]
clusters: [{name: management, cluster: {server: "https://management:6443"}}]
"""
WORKLOAD: Any = object()


class RecordedConnections:
    """Which clusters were connected to."""

    def __init__(self, **environment: str) -> None:
        self.servers: list[str] = []
        self.around = ProviderDependencies(
            workload=WORKLOAD,
            clock=RealClock(),
            simulated_cloud=lambda _client: MemoryCloud(),
            connect=self._connect,
            environment=environment,
        )

    def _connect(self, access: Any) -> Any:
        self.servers.append(access.server)
        return object()

    def provider(self, **flags: Any) -> Any:
        policy = read_options({name.replace("_", "-"): value for name, value in flags.items()})
        return cast("Any", make_provider(policy, self.around))


@pytest.mark.parametrize("name", ["simulated", "fake", "kwok"])
def test_the_simulated_provider_goes_by_three_names(name: str):
    assert RecordedConnections().provider(cloud_provider=name).name == "simulated"


def test_an_external_provider_needs_its_file(reviewed: ReviewedSentences):
    with pytest.raises(InvalidInput) as refused:
        RecordedConnections().provider(cloud_provider="externalgrpc")
    reviewed(str(refused.value))


def test_a_file_of_an_external_provider_that_cannot_be_used_is_named(tmp_path: Path, reviewed: ReviewedSentences):
    file = tmp_path / "cloud.yaml"
    with pytest.raises(InvalidInput) as refused:
        RecordedConnections().provider(cloud_provider="externalgrpc", cloud_config=str(file))
    reviewed(str(refused.value))
    file.write_text("address: nowhere")
    with pytest.raises(InvalidInput) as raised:
        RecordedConnections().provider(cloud_provider="externalgrpc", cloud_config=str(file))
    reviewed(str(raised.value))


# ---- Cluster API: one cluster or two


def test_cluster_api_is_in_the_same_cluster_by_default():
    made = RecordedConnections()
    assert made.provider(cloud_provider="clusterapi").name == "clusterapi"
    assert made.servers == []


def test_a_cloud_config_is_the_kubeconfig_of_the_management_cluster(tmp_path: Path):
    file = tmp_path / "management"
    file.write_text(KUBECONFIG)
    made = RecordedConnections()
    made.provider(cloud_provider="clusterapi", cloud_config=str(file))
    assert made.servers == ["https://management:6443"]


def test_an_authoritative_cloud_config_does_not_fall_back_to_the_kubeconfig(reviewed: ReviewedSentences):
    flags = {"cloud_provider": "clusterapi", "clusterapi_cloud_config_authoritative": True}
    with pytest.raises(InvalidInput) as refused:
        RecordedConnections().provider(**flags)
    reviewed(str(refused.value))
    operation = read_options({"cloud-provider": "clusterapi"}).operation
    assert find_management_access(operation, environment={}, clock=RealClock()) is None


def test_discovery_flags_are_read_for_cluster_api():
    with pytest.raises(InvalidInput, match="node-group-auto-discovery"):
        RecordedConnections().provider(cloud_provider="clusterapi", node_group_auto_discovery="asg:tag=x")


# ---- the expander


def test_without_grpc_in_the_chain_no_server_is_called():
    assert make_expander(read_options({"expander": "least-waste"}).planning) is None


@pytest.mark.parametrize(
    ("flags", "why"),
    [
        ({"grpc-expander-url": "expander"}, "grpc-expander-url: must be host:port"),
        ({"grpc-expander-url": "expander:7000"}, "grpc-expander-cert: must be given"),
        ({"grpc-expander-url": "127.0.0.1:7", "grpc-expander-cert": "/none/ca.crt"}, "cannot be read"),
    ],
)
def test_an_expander_that_cannot_be_reached_safely_is_an_error(flags: dict[str, str], why: str):
    with pytest.raises(InvalidInput, match=why):
        make_expander(read_options({"expander": "grpc,least-waste", **flags}).planning)
