"""Creating a Kafka request: the checks of docs/design/fleet.md 3.2 in their order, and one insert.

The region's limit, the quota and the name are checked again by the database in the transaction that inserts the row.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from msgspec import structs

from plimsoll.core.durations import add_seconds
from plimsoll.fleet.api.errors import Code, RequestRefused
from plimsoll.fleet.api.presentation import ENTERPRISE_BILLING
from plimsoll.fleet.api.public.entitlements import DEVELOPER, STANDARD, find_entitlement
from plimsoll.fleet.model.kafkas import KafkaRequest
from plimsoll.fleet.model.statuses import ScalingType
from plimsoll.fleet.planning.placement import build_cluster_room, check_enterprise_cluster, place_kafkas
from plimsoll.fleet.planning.region_check import Refused, build_region_check
from plimsoll.fleet.ports import InsertResult

if TYPE_CHECKING:
    from plimsoll.fleet.api.documents.public import KafkaPayload
    from plimsoll.fleet.api.ports import ApiPorts
    from plimsoll.fleet.api.public.entitlements import Entitlement
    from plimsoll.fleet.auth.claims import Caller
    from plimsoll.fleet.model.clusters import Cluster
    from plimsoll.fleet.model.policy import CloudProvider, Region, Size
    from plimsoll.fleet.ports import ClusterRoom

_NAME: Final = re.compile(r"[a-z]([-a-z0-9]*[a-z0-9])?", re.ASCII)
_LONGEST_NAME: Final = 32
_ID_LENGTH: Final = 20
_CLOSED: Final = "closed"
_ATTEMPTS: Final = 20
"""How often a place is looked for again if, at the insert, the cluster is no longer ready or others have filled it."""


class KafkaCreation:
    """Makes rows in status `accepted`."""

    def __init__(self, ports: ApiPorts) -> None:
        self._ports = ports
        self._policy = ports.policy

    async def create(self, payload: KafkaPayload, caller: Caller) -> KafkaRequest:
        """The inserted row. Raises `RequestRefused`."""
        _check_name(payload.name)
        cluster = await self._find_enterprise_cluster(payload, caller)
        wanted_type, wanted_size = _parse_plan(payload.plan)
        entitlement = find_entitlement(
            caller,
            wanted_type,
            quota=self._ports.access.quota,
            policy=self._policy,
            now=self._ports.clock.now(),
            billing_model=payload.billing_model or "",
        )
        size = self._find_size(entitlement.instance_type, wanted_size)
        if cluster is None:
            provider, region = self._find_location(payload)
            location = provider.name, region.name
        else:
            location = cluster.cloud_provider, cluster.region
        kafka = self._build_row(payload, caller, entitlement.instance_type, size=size, location=location)
        if cluster is not None:
            return await self._insert_on_enterprise_cluster(kafka, cluster)
        return await self._insert(kafka, entitlement)

    # ---- what is wanted

    def _find_location(self, payload: KafkaPayload) -> tuple[CloudProvider, Region]:
        providers = self._policy.providers
        if payload.cloud_provider:
            provider = self._policy.find_provider(payload.cloud_provider)
        else:
            provider = next((found for found in providers if found.is_default), None)
        if provider is None:
            known = ", ".join(found.name for found in providers)
            raise RequestRefused(
                Code.PROVIDER_NOT_SUPPORTED, f"provider {payload.cloud_provider!r} is not supported, only {known}"
            )
        if payload.region:
            region = provider.find_region(payload.region)
        else:
            region = next((found for found in provider.regions if found.is_default), None)
        if region is None:
            known = ", ".join(found.name for found in provider.regions)
            raise RequestRefused(
                Code.REGION_NOT_SUPPORTED,
                f"region {payload.region!r} of {provider.name} is not supported, only {known}",
            )
        return provider, region

    def _find_size(self, instance_type: str, wanted_size: str) -> Size:
        known = self._policy.instance_types.get(instance_type)
        if known is None or not known.sizes:
            raise RequestRefused(Code.INSTANCE_TYPE, f"instance type {instance_type!r} is not supported")
        size = known.find_size(wanted_size) if wanted_size else known.sizes[0]
        if size is None:
            sizes = ", ".join(f"{instance_type}.{found.id}" for found in known.sizes)
            raise RequestRefused(Code.PLAN, f"plan '{instance_type}.{wanted_size}' is not supported, only {sizes}")
        return size

    async def _find_enterprise_cluster(self, payload: KafkaPayload, caller: Caller) -> Cluster | None:
        if not payload.cluster_id:
            return None
        cluster = await self._ports.store.find_cluster(payload.cluster_id)
        if cluster is None or not caller.organisation or cluster.organization_id != caller.organisation:
            raise RequestRefused(Code.BAD_CLUSTER_ID, f"the organisation has no cluster {payload.cluster_id!r}")
        return cluster

    def _build_row(
        self, payload: KafkaPayload, caller: Caller, instance_type: str, *, size: Size, location: tuple[str, str]
    ) -> KafkaRequest:
        now = self._ports.clock.now()
        billing_model = self._find_billing_model(payload, instance_type)
        reauthentication = payload.reauthentication_enabled
        return KafkaRequest(
            id=self._ports.entropy.generate_suffix(_ID_LENGTH),
            created_at=now,
            updated_at=now,
            name=payload.name,
            owner=caller.user,
            owner_account_id=caller.account,
            organisation_id=caller.organisation,
            cloud_provider=location[0],
            region=location[1],
            multi_az=instance_type == STANDARD,
            instance_type=instance_type,
            size_id=size.id,
            quota_type=self._ports.settings.quota_type,
            max_data_retention_size=size.max_data_retention_size,
            expires_at=None if size.lifespan_seconds is None else add_seconds(now, size.lifespan_seconds),
            reauthentication_enabled=True if reauthentication is None else reauthentication,
            billing_cloud_account_id=payload.billing_cloud_account_id or "",
            marketplace=payload.marketplace or "",
            desired_kafka_billing_model=billing_model,
            actual_kafka_billing_model=billing_model,
        )

    def _find_billing_model(self, payload: KafkaPayload, instance_type: str) -> str:
        if payload.cluster_id:
            return ENTERPRISE_BILLING
        known = [model.id for model in self._policy.instance_types[instance_type].billing_models]
        if payload.billing_model and known and payload.billing_model not in known:
            raise RequestRefused(
                Code.BAD_REQUEST, f"billing model {payload.billing_model!r} is not supported, only {', '.join(known)}"
            )
        return payload.billing_model or (known[0] if known else "")

    # ---- inserting

    async def _insert(self, kafka: KafkaRequest, entitlement: Entitlement) -> KafkaRequest:
        check = build_region_check(self._policy, kafka.locator)
        if isinstance(check, Refused):
            code = Code.CAPACITY_EXHAUSTED if check.reason == _CLOSED else Code.INSTANCE_TYPE
            raise RequestRefused(code, check.message)
        check = structs.replace(
            check, owner_limit=entitlement.owner_limit, organisation_limit=entitlement.organisation_limit
        )
        for _ in range(_ATTEMPTS):
            placed, room = await self._place(kafka)
            result = await self._ports.store.insert_kafka(placed, check, room=room)
            if result is InsertResult.DONE:
                return placed
            if result not in {InsertResult.OVERTAKEN, InsertResult.CLUSTER_FULL}:
                raise _refuse_insert(kafka, result)
        raise _refuse_insert(kafka, InsertResult.CLUSTER_FULL)

    async def _place(self, kafka: KafkaRequest) -> tuple[KafkaRequest, ClusterRoom | None]:
        """The row with a cluster and what that can hold, unless a worker places it later."""
        if self._policy.scaling_type is ScalingType.AUTO:
            return kafka, None
        clusters = await self._ports.store.list_clusters()
        counts = await self._ports.store.count_kafkas(self._policy)
        (decision,) = place_kafkas((kafka,), clusters, counts, self._policy, self._ports.clock.now())
        cluster = next((cluster for cluster in clusters if cluster.id == decision.cluster), None)
        if cluster is None:
            raise RequestRefused(Code.CAPACITY_EXHAUSTED, decision.message)
        room = build_cluster_room(cluster, kafka.instance_type, self._policy)
        return structs.replace(kafka, cluster_id=cluster.cluster_id), room

    async def _insert_on_enterprise_cluster(self, kafka: KafkaRequest, cluster: Cluster) -> KafkaRequest:
        counts = await self._ports.store.count_kafkas(self._policy)
        decision = check_enterprise_cluster(kafka, cluster, counts, self._policy)
        if decision.cluster is None:
            raise RequestRefused(Code.CAPACITY_EXHAUSTED, decision.message)
        placed = structs.replace(kafka, cluster_id=cluster.cluster_id)
        room = build_cluster_room(cluster, kafka.instance_type, self._policy)
        result = await self._ports.store.insert_kafka(placed, None, room=room)
        if result is not InsertResult.DONE:
            raise _refuse_insert(kafka, result)
        return placed


def _check_name(name: str) -> None:
    if not name:
        raise RequestRefused(Code.MINIMUM_LENGTH, "name: at least 1 character is needed")
    if len(name) > _LONGEST_NAME:
        raise RequestRefused(Code.MAXIMUM_LENGTH, f"name: at most {_LONGEST_NAME} characters are allowed")
    if not _NAME.fullmatch(name):
        raise RequestRefused(
            Code.BAD_KAFKA_NAME,
            f"name {name!r} must consist of lower case letters, digits and '-', begin with a letter, and end with a "
            "letter or a digit",
        )


def _parse_plan(plan: str) -> tuple[str, str]:
    """Instance type and size; both empty without a plan."""
    if not plan:
        return "", ""
    instance_type, separator, size = plan.partition(".")
    if not separator or not instance_type or not size:
        raise RequestRefused(Code.PLAN, f"plan {plan!r} is not INSTANCE_TYPE.SIZE")
    return instance_type, size


def _refuse_insert(kafka: KafkaRequest, result: InsertResult) -> RequestRefused:
    match result:
        case InsertResult.NAME_TAKEN:
            return RequestRefused(Code.DUPLICATE_NAME, f"the name {kafka.name!r} is used already")
        case InsertResult.ORGANISATION_LIMIT_REACHED:
            return RequestRefused(Code.INSUFFICIENT_QUOTA, "the quota of the organisation is used up")
        case InsertResult.OWNER_LIMIT_REACHED if kafka.instance_type != DEVELOPER:
            return RequestRefused(Code.INSUFFICIENT_QUOTA, "the quota of the owner is used up")
        case InsertResult.OWNER_LIMIT_REACHED:
            return RequestRefused(
                Code.CAPACITY_EXHAUSTED, f"the owner has the most {kafka.instance_type} instances that are allowed"
            )
        case InsertResult.OVERTAKEN:
            return RequestRefused(Code.CONFLICT, "the cluster changed meanwhile; try again")
        case _:
            return RequestRefused(
                Code.CAPACITY_EXHAUSTED, f"region {kafka.region} has no room for another {kafka.instance_type} instance"
            )
