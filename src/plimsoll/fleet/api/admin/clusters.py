"""Routes of administrators for clusters (docs/design/fleet.md 15.3)."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Final

import msgspec
from starlette.requests import Request  # noqa: TC002 - FastAPI reads annotations at run time

from plimsoll.fleet.api.documents.admin import (
    AdminClusterAnswer,
    AdminClusterListAnswer,
    CapacityAnswer,
    ClusterPatch,
    ClusterPayload,
)
from plimsoll.fleet.api.documents.base import build_document_response
from plimsoll.fleet.api.errors import BASE_PATH, Code, RequestRefused
from plimsoll.fleet.api.operations import Group, Operation, PageNumber, PageSize, RowId, answer_errors
from plimsoll.fleet.api.parsing.bodies import read_model
from plimsoll.fleet.api.parsing.paging import cut_page, parse_page
from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity, Locator
from plimsoll.fleet.model.statuses import DELETING, ClusterStatus, ClusterType, ProviderType
from plimsoll.fleet.model.workers import Worker
from plimsoll.fleet.planning.capacity import get_assumed_units
from plimsoll.fleet.planning.problems import list_cluster_problems

if TYPE_CHECKING:
    from collections.abc import Mapping

    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.ports import ClusterChanges
    from plimsoll.web.responses import PageResponse

_CREATED: Final = 201
_ID_LENGTH: Final = 20
_ALIVE: Final = frozenset(set(ClusterStatus) - DELETING)


class AdminClusters:
    """Cluster rows without their secrets."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports
        self._store = ports.store

    def list_operations(self) -> tuple[Operation, ...]:
        return (
            Operation(
                method="GET",
                path="/admin/clusters",
                operation_id="getClusters",
                group=Group.ADMIN,
                endpoint=self.list_clusters,
                answers={200: AdminClusterListAnswer, **answer_errors(400, 401, 404, 429, 500)},
                summary="All clusters, oldest first.",
            ),
            Operation(
                method="POST",
                path="/admin/clusters",
                operation_id="registerCluster",
                group=Group.ADMIN,
                endpoint=self.register_cluster,
                body=ClusterPayload,
                answers={_CREATED: AdminClusterAnswer, **answer_errors(400, 401, 404, 409, 413, 429, 500)},
                summary="Register a cluster that exists already.",
            ),
            Operation(
                method="GET",
                path="/admin/clusters/{id}",
                operation_id="getClusterById",
                group=Group.ADMIN,
                endpoint=self.get_cluster,
                answers={200: AdminClusterAnswer, **answer_errors(400, 401, 404, 429, 500)},
                summary="A cluster, by the id of its row.",
            ),
            Operation(
                method="PATCH",
                path="/admin/clusters/{id}",
                operation_id="updateClusterById",
                group=Group.ADMIN,
                endpoint=self.change_cluster,
                body=ClusterPatch,
                answers={200: AdminClusterAnswer, **answer_errors(400, 401, 404, 409, 413, 429, 500)},
                summary="Close a cluster for new Kafkas, or change the most nodes of its pools.",
            ),
            Operation(
                method="POST",
                path="/admin/clusters/{id}/retire",
                operation_id="retireCluster",
                group=Group.ADMIN,
                endpoint=self.retire_cluster,
                answers={200: AdminClusterAnswer, **answer_errors(400, 401, 404, 409, 429, 500)},
                summary="Remove a failed cluster, or a ready one as soon as it is empty.",
            ),
        )

    async def list_clusters(self, number: PageNumber = "", size: PageSize = "") -> PageResponse:
        page = parse_page(number, size)
        clusters = await self._store.list_clusters()
        items = [self._present(cluster) for cluster in cut_page(clusters, page)]
        orphans = await self._store.list_orphans()
        return build_document_response(
            AdminClusterListAnswer(
                kind="ClusterList",
                page=page.number,
                size=len(items),
                total=len(clusters),
                items=items,
                problems=[str(orphan) for orphan in orphans],
            )
        )

    async def get_cluster(self, row_id: RowId) -> PageResponse:
        return build_document_response(self._present(await self._find(row_id)))

    async def register_cluster(self, request: Request) -> PageResponse:
        payload = await read_model(request, ClusterPayload)
        self._check_payload(payload)
        now = self._ports.clock.now()
        cluster = Cluster(
            id=self._ports.entropy.generate_suffix(_ID_LENGTH),
            created_at=now,
            updated_at=now,
            cluster_id=payload.cluster_id,
            cloud_provider=payload.cloud_provider,
            region=payload.region,
            multi_az=payload.multi_az,
            provider_type=ProviderType(payload.provider_type),
            provider_spec={"name": payload.name} if payload.name else {},
            cluster_dns=payload.cluster_dns,
            supported_instance_type=payload.supported_instance_type,
            dynamic_capacity_info={name: DynamicCapacity(max_nodes=nodes) for name, nodes in payload.max_nodes.items()},
            cluster_type=ClusterType(payload.cluster_type),
            organization_id=payload.organization_id,
            access_kafkas_via_private_network=payload.access_kafkas_via_private_network,
        )
        if not await self._store.insert_cluster(cluster):
            if await self._store.find_cluster(payload.cluster_id) is not None:
                raise RequestRefused(Code.DUPLICATE_CLUSTER_ID)
            raise RequestRefused(Code.CONFLICT, "another cluster of this region and type is being created")
        self._ports.signals.notify(Worker.CLUSTER)
        return build_document_response(self._present(cluster), _CREATED)

    async def change_cluster(self, request: Request, row_id: RowId) -> PageResponse:
        cluster = await self._find(row_id)
        patch = await read_model(request, ClusterPatch)
        changes: ClusterChanges = {}
        if patch.schedulable is not None:
            changes["schedulable"] = patch.schedulable
        if patch.max_nodes:
            await self._check_nodes(cluster, patch.max_nodes)
        if not changes and not patch.max_nodes:
            raise RequestRefused(Code.FIELD_VALIDATION, "the body changes nothing: name a field")
        return await self._store_changes(cluster, changes, max_nodes=patch.max_nodes)

    async def retire_cluster(self, row_id: RowId) -> PageResponse:
        """A failed cluster is removed at once, a ready one when it is empty: a worker marks it."""
        cluster = await self._find(row_id)
        now = self._ports.clock.now()
        if cluster.status not in {ClusterStatus.FAILED, ClusterStatus.READY}:
            raise RequestRefused(Code.CONFLICT, f"a cluster that is {cluster.status} cannot be retired")
        changes: ClusterChanges = {"retire_requested_at": cluster.retire_requested_at or now, "schedulable": False}
        if cluster.status is ClusterStatus.FAILED:
            # With the time of a delete call it is never restored to `ready`.
            changes["status"] = ClusterStatus.DEPROVISIONING
            changes["delete_requested_at"] = now
        return await self._store_changes(cluster, changes)

    async def _store_changes(
        self, cluster: Cluster, changes: ClusterChanges, *, max_nodes: Mapping[str, int] | None = None
    ) -> PageResponse:
        statuses = {cluster.status} if "status" in changes or "retire_requested_at" in changes else _ALIVE
        changed = await self._store.change_cluster(cluster.id, changes, statuses=statuses, max_nodes=max_nodes)
        if changed is None:
            raise RequestRefused(Code.CONFLICT, "the cluster changed meanwhile, or is being removed")
        for worker in (Worker.CLUSTER, Worker.DEPROVISIONING_CLUSTERS):
            self._ports.signals.notify(worker)
        return build_document_response(self._present(changed))

    def _check_payload(self, payload: ClusterPayload) -> None:
        policy = self._ports.policy
        types = [name.strip() for name in payload.supported_instance_type.split(",")]
        unknown = [name for name in types if name not in policy.instance_types]
        if unknown:
            raise RequestRefused(Code.INSTANCE_TYPE, f"supported_instance_type: {unknown[0]!r} is not configured")
        if policy.find_provider(payload.cloud_provider) is None:
            raise RequestRefused(Code.PROVIDER_NOT_SUPPORTED, f"cloud_provider: {payload.cloud_provider!r}")
        if policy.find_region(payload.cloud_provider, payload.region) is None:
            raise RequestRefused(Code.REGION_NOT_SUPPORTED, f"region: {payload.region!r}")
        unused = [name for name in payload.max_nodes if name not in types]
        if unused:
            raise RequestRefused(Code.FIELD_VALIDATION, f"max_nodes: the cluster does not support {unused[0][:50]!r}")
        if payload.provider_type == "standalone" and not (payload.name and payload.cluster_dns):
            raise RequestRefused(Code.FIELD_VALIDATION, "a standalone cluster needs name and cluster_dns")
        if payload.cluster_type == "enterprise" and not payload.organization_id:
            raise RequestRefused(Code.FIELD_VALIDATION, "an enterprise cluster needs organization_id")

    async def _check_nodes(self, cluster: Cluster, wanted: Mapping[str, int]) -> None:
        """Refuses fewer nodes than what runs needs, by the units per node that the agent reports."""
        counts = await self._store.count_kafkas(self._ports.policy)
        for name, nodes in wanted.items():
            capacity = cluster.dynamic_capacity_info.get(name)
            if capacity is None:
                raise RequestRefused(Code.FIELD_VALIDATION, f"max_nodes: the cluster has no pool for {name[:50]!r}")
            locator = Locator(cluster.cloud_provider, cluster.region, name)
            units = sum(
                get_assumed_units(self._ports.policy, name, count.size_id) * count.consuming
                for count in counts
                if count.cluster_id == cluster.cluster_id and cluster.cluster_id and count.locator == locator
            )
            needed = math.ceil(units * capacity.max_nodes / capacity.max_units) if capacity.max_units > 0 else 0
            if nodes < needed:
                raise RequestRefused(
                    Code.CONFLICT, f"max_nodes: the Kafkas of type {name} need {needed} nodes, and {nodes} are wanted"
                )

    async def _find(self, row_id: str) -> Cluster:
        cluster = await self._store.get_cluster(row_id)
        if cluster is None:
            raise RequestRefused(Code.NOT_FOUND, f"there is no cluster {row_id[:50]!r}")
        return cluster

    def _present(self, cluster: Cluster) -> AdminClusterAnswer:
        return AdminClusterAnswer(
            id=cluster.id,
            kind="Cluster",
            href=f"{BASE_PATH}/admin/clusters/{cluster.id}",
            created_at=cluster.created_at,
            updated_at=cluster.updated_at,
            cluster_id=cluster.cluster_id or None,
            external_id=cluster.external_id or None,
            cloud_provider=cluster.cloud_provider,
            region=cluster.region,
            multi_az=cluster.multi_az,
            status=cluster.status,
            status_details=cluster.status_details or None,
            provider_type=cluster.provider_type,
            cluster_dns=cluster.cluster_dns or None,
            identity_provider_id=cluster.identity_provider_id or None,
            client_id=cluster.client_id or None,
            available_strimzi_versions=msgspec.to_builtins(cluster.available_strimzi_versions),
            supported_instance_type=cluster.supported_instance_type,
            dynamic_capacity_info={
                name: CapacityAnswer(
                    max_nodes=capacity.max_nodes,
                    max_units=capacity.max_units,
                    remaining_units=capacity.remaining_units,
                )
                for name, capacity in cluster.dynamic_capacity_info.items()
            },
            cluster_type=cluster.cluster_type,
            organization_id=cluster.organization_id or None,
            access_kafkas_via_private_network=cluster.access_kafkas_via_private_network,
            schedulable=cluster.schedulable,
            delete_requested_at=cluster.delete_requested_at,
            retire_requested_at=cluster.retire_requested_at,
            empty_since=cluster.empty_since,
            ready_at=cluster.ready_at,
            last_report_at=cluster.last_report_at,
            problems=[
                problem.message
                for problem in list_cluster_problems(
                    cluster, agent_silence_s=self._ports.policy.agent_silence_s, now=self._ports.clock.now()
                )
            ],
        )
