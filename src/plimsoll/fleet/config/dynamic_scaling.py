"""The file of dynamic scaling: machines of new clusters, triggers and options (docs/design/fleet.md 2.1 and 15.1)."""

from __future__ import annotations

from typing import Annotated, Final, Literal

from pydantic import AfterValidator, Field, model_validator

from plimsoll.fleet.config.strict import Count, Document, Duration, Name, Positive, Text, raise_mistakes
from plimsoll.fleet.model.policy import (
    CreationPolicy,
    MachinePool,
    PlacementStrategy,
    ProviderMachines,
    RemovalPolicy,
)

LEAST_CLUSTER_WIDE: Final = 3


class AutoscalingDocument(Document):
    """The bounds of a pool."""

    min_compute_nodes: Positive = Field(description="At least 1; in the cluster-wide pool at least 3.")
    max_compute_nodes: Positive = Field(description="At least the minimum.")

    @model_validator(mode="after")
    def _check(self) -> AutoscalingDocument:
        if self.max_compute_nodes < self.min_compute_nodes:
            reason = f"{self.max_compute_nodes} is less than min_compute_nodes, {self.min_compute_nodes}"
            raise_mistakes("bounds", [(("max_compute_nodes",), reason)])
        return self


class WorkloadDocument(Document):
    """The machines of a pool."""

    compute_machine_type: Name = Field(description="The machine type of the provider.")
    compute_node_autoscaling: AutoscalingDocument = Field(description="How many machines.")

    def build_pool(self) -> MachinePool:
        return MachinePool(
            machine_type=self.compute_machine_type,
            min_nodes=self.compute_node_autoscaling.min_compute_nodes,
            max_nodes=self.compute_node_autoscaling.max_compute_nodes,
        )


def _check_cluster_wide(workload: WorkloadDocument) -> WorkloadDocument:
    least = workload.compute_node_autoscaling.min_compute_nodes
    if least < LEAST_CLUSTER_WIDE:
        path = ("compute_node_autoscaling", "min_compute_nodes")
        raise_mistakes("workload", [(path, f"must be at least {LEAST_CLUSTER_WIDE}")])
    return workload


class MachinesDocument(Document):
    """The pools of a cluster at one provider."""

    cluster_wide_workload: Annotated[WorkloadDocument, AfterValidator(_check_cluster_wide)] = Field(
        description="The default pool."
    )
    kafka_workload_per_instance_type: dict[Name, WorkloadDocument] = Field(
        description="One pool per instance type that a region of the provider offers."
    )

    def build_machines(self) -> ProviderMachines:
        return ProviderMachines(
            cluster_wide=self.cluster_wide_workload.build_pool(),
            per_type={name: pool.build_pool() for name, pool in self.kafka_workload_per_instance_type.items()},
        )


class ClusterCreationDocument(Document):
    """Options of cluster creations."""

    retry_initial: Duration = Field(default=30.0, description="Time after a failed creation; it doubles.")
    retry_max: Duration = Field(default=1800.0, description="The longest such time.")
    max_failed: Count = Field(
        default=3, description="After so many failures within a day none is made until one is retired; 0: no limit."
    )
    count_backlog: bool = Field(default=False, description="Count Kafkas without a place as consumed capacity.")
    max_parallel: Positive = Field(default=1, description="Creations at once, if the backlog exceeds what they bring.")

    def build_policy(self) -> CreationPolicy:
        return CreationPolicy(
            retry_initial_s=self.retry_initial,
            retry_max_s=self.retry_max,
            max_failed=self.max_failed,
            count_backlog=self.count_backlog,
            max_parallel=self.max_parallel,
        )


class ClusterRemovalDocument(Document):
    """Options of cluster removals."""

    minimum_empty: Duration = Field(default=0.0, description="A cluster has to be empty for this time.")
    cool_down: Duration = Field(default=0.0, description="No removal for this time after a creation became ready.")

    def build_policy(self) -> RemovalPolicy:
        return RemovalPolicy(minimum_empty_s=self.minimum_empty, cool_down_s=self.cool_down)


class DynamicScalingDocument(Document):
    """`dynamic-scaling-configuration.yaml`: read only with the scaling type `auto`."""

    new_data_plane_openshift_version: Text = Field(
        default="openshift-v4.11.36", description="Version of new clusters; empty: the latest of the provider."
    )
    enable_dynamic_data_plane_scale_up: bool = Field(
        default=False, description="Create clusters. Off: only evaluate and report."
    )
    enable_dynamic_data_plane_scale_down: bool = Field(
        default=False, description="Remove clusters. Off: only evaluate and report."
    )
    compute_machine_per_cloud_provider: dict[Name, MachinesDocument] = Field(description="Machines by provider.")
    cluster_creation: ClusterCreationDocument = Field(
        default=ClusterCreationDocument(), description="Options of cluster creations."
    )
    cluster_removal: ClusterRemovalDocument = Field(
        default=ClusterRemovalDocument(), description="Options of cluster removals."
    )
    agent_silence: Duration = Field(
        default=600.0, description="A cluster whose agent is silent for longer gets no new Kafkas."
    )
    placement: Literal["first", "best_fit", "spread"] = Field(
        default="first", description="Which cluster with room gets a Kafka: the oldest, the fullest or the emptiest."
    )

    def list_warnings(self) -> list[str]:
        """The triggers are off unless the file turns them on: a file of the original may rely on its default."""
        names = ("enable_dynamic_data_plane_scale_up", "enable_dynamic_data_plane_scale_down")
        return [f"{name} is absent: it is off" for name in names if name not in self.model_fields_set]

    def build_strategy(self) -> PlacementStrategy:
        return PlacementStrategy(self.placement)
