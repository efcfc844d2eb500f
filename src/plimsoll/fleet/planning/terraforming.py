"""What a cluster needs after its provider has made it, and what of it is missing (docs/design/fleet.md 8).

Pools are compared with what the fleet manager applied last, which its row keeps in `cluster_spec`: a bound that differs
from it was changed by hand and is reported, a `max_nodes` that differs from it was changed by an administrator and is
applied. A provider may keep other bounds than those that were ordered: the row has what the provider holds, the
difference is a problem of the cluster, and the bounds are ordered again from time to time.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import msgspec
from msgspec import structs

from plimsoll.core.values import Value
from plimsoll.fleet.model.clusters import Cluster, DynamicCapacity
from plimsoll.fleet.model.pools import PoolBounds, name_pool
from plimsoll.fleet.model.provided import AddonKind, AddonOrder, ClusterOrder, SetupOrder, name_cluster
from plimsoll.fleet.model.statuses import ClusterStatus, ProviderType, ScalingType
from plimsoll.fleet.planning.machine_pools import build_pools, round_replicas

if TYPE_CHECKING:
    from plimsoll.fleet.model.policy import FleetPolicy
    from plimsoll.fleet.model.provided import ClusterSetup

DEFAULT_POOL: Final = "default"
AGENT_NAMESPACE: Final = "redhat-kas-fleetshard-operator"
PULL_SECRET: Final = "rhoas-image-pull-secret"  # noqa: S105 - its name
_APPLIED: Final = "pools"
_ORDERED: Final = "ordered"
_PROBLEMS: Final = "problems"


class SetupSettings(Value):
    """What all clusters of a fleet get. `control_plane_url`: the API for agents."""

    control_plane_url: str
    agent_issuer_url: str
    poll_interval: str = "15s"
    resync_interval: str = "60s"
    has_logging: bool = False
    pull_secret: str = ""
    """A Docker configuration as JSON; empty: none is applied."""

    def __repr__(self) -> str:
        return f"SetupSettings({self.control_plane_url!r})"


class SetupPlan(Value):
    """What is missing in a cluster, and what of the cluster the row does not know yet."""

    ensured: tuple[PoolBounds, ...] = ()
    """Pools to make, or to give these bounds."""
    adopted: tuple[PoolBounds, ...] = ()
    """Pools that are there, and whose bounds the row gets."""
    dns: str = ""
    """The DNS name that the row gets; empty: it has one, or there is none."""
    applies_resources: bool = False
    applies_addons: bool = False
    problems: tuple[str, ...] = ()
    """What is not as it should be, and is left alone."""
    waits_for: tuple[str, ...] = ()

    @property
    def has_changes(self) -> bool:
        return bool(self.ensured or self.adopted or self.dns or self.applies_resources or self.applies_addons)

    @property
    def is_complete(self) -> bool:
        return not self.has_changes and not self.waits_for

    def list_changes(self) -> list[str]:
        """In words, in the order in which they are made."""
        changes = [f"pool {pool.id} {pool.min_replicas}..{pool.max_replicas}" for pool in self.ensured]
        changes += [f"bounds of pool {pool.id}" for pool in self.adopted]
        changes += ["DNS name"] if self.dns else []
        changes += ["objects"] if self.applies_resources else []
        changes += ["add-ons"] if self.applies_addons else []
        return changes


def build_cluster_order(cluster: Cluster, policy: FleetPolicy) -> ClusterOrder | str:
    """The order of a new cluster; text: why there can be none."""
    machines = policy.machines.get(cluster.cloud_provider)
    if machines is None:
        return f"no machines are configured for provider {cluster.cloud_provider}"
    region = policy.find_region(cluster.cloud_provider, cluster.region)
    pool = machines.cluster_wide
    return ClusterOrder(
        name=name_cluster(cluster.id),
        row_id=cluster.id,
        cloud_provider=cluster.cloud_provider,
        region=cluster.region,
        multi_az=cluster.multi_az,
        default_pool=PoolBounds(
            id=DEFAULT_POOL, machine_type=pool.machine_type, min_replicas=pool.min_nodes, max_replicas=pool.max_nodes
        ),
        version=policy.openshift_version,
        cluster_class="" if region is None else region.cluster_class,
    )


def build_setup_order(cluster: Cluster, policy: FleetPolicy, settings: SetupSettings) -> SetupOrder:
    """Pools, objects and add-ons. A row without an account of its agent gets add-ons that are never current."""
    return SetupOrder(
        pools=_build_wanted_pools(cluster, policy),
        resources=_build_resources(settings),
        addons=_build_addons(cluster, settings),
    )


def plan_setup(cluster: Cluster, order: SetupOrder, held: ClusterSetup, *, repeats_orders: bool = False) -> SetupPlan:
    """Compares what is ordered with what is there. `repeats_orders`: of bounds that the provider keeps otherwise."""
    pools = _compare_pools(cluster, order, held, repeats_orders=repeats_orders)
    states = {state.kind: state for state in held.addons}
    missing = [addon.kind for addon in order.addons if addon.kind not in states]
    changed = [state.kind for state in held.addons if state.is_ready and not state.is_current]
    return structs.replace(
        pools,
        dns=held.dns if not cluster.cluster_dns else "",
        applies_resources=not held.has_resources,
        applies_addons=bool(missing or changed),
        problems=(*held.problems, *pools.problems),
        waits_for=_list_waits(cluster, order, held),
    )


def write_pools(
    cluster: Cluster, pools: tuple[PoolBounds, ...], *, ordered: tuple[PoolBounds, ...] = ()
) -> dict[str, Any]:
    """`cluster_spec` with these pools as those applied last, and with the orders that they do not meet."""
    written = {pool.id: pool for pool in pools}
    applied = {**read_applied_pools(cluster), **written}
    unmet = {pool_id: pool for pool_id, pool in read_unmet_pools(cluster).items() if pool_id not in written}
    unmet |= {pool.id: pool for pool in find_unmet_pools(pools, ordered)}
    return {**cluster.cluster_spec, _APPLIED: msgspec.to_builtins(applied), _ORDERED: msgspec.to_builtins(unmet)}


def find_unmet_pools(pools: tuple[PoolBounds, ...], ordered: tuple[PoolBounds, ...]) -> tuple[PoolBounds, ...]:
    """The orders whose bounds the provider keeps otherwise."""
    by_id = {pool.id: pool for pool in pools}
    return tuple(pool for pool in ordered if pool.id in by_id and not _has_bounds(by_id[pool.id], pool))


def write_problems(cluster: Cluster, problems: tuple[str, ...]) -> dict[str, Any]:
    """`cluster_spec` with these problems."""
    return {**cluster.cluster_spec, _PROBLEMS: list(problems)}


def read_problems(cluster: Cluster) -> tuple[str, ...]:
    """The problems that the worker found last."""
    found = cluster.cluster_spec.get(_PROBLEMS)
    return tuple(text for text in found if isinstance(text, str)) if isinstance(found, list) else ()


def read_applied_pools(cluster: Cluster) -> dict[str, PoolBounds]:
    """The pools as the fleet manager applied them last. A part that is unreadable counts as never applied."""
    return _read_pools(cluster, _APPLIED)


def read_unmet_pools(cluster: Cluster) -> dict[str, PoolBounds]:
    """Orders of pools whose bounds the provider keeps otherwise."""
    return _read_pools(cluster, _ORDERED)


def _read_pools(cluster: Cluster, key: str) -> dict[str, PoolBounds]:
    try:
        return msgspec.convert(cluster.cluster_spec.get(key, {}), dict[str, PoolBounds])
    except msgspec.ValidationError:
        return {}


def _compare_pools(cluster: Cluster, order: SetupOrder, held: ClusterSetup, *, repeats_orders: bool) -> SetupPlan:
    by_id = {pool.id: pool for pool in held.pools}
    applied, unmet = read_applied_pools(cluster), read_unmet_pools(cluster)
    ensured, adopted, problems = [], [], []
    for pool in order.pools:
        there, last, ordered = by_id.get(pool.id), applied.get(pool.id), unmet.get(pool.id)
        if there is None:
            if cluster.status is ClusterStatus.READY and last is not None:
                problems.append(f"pool {pool.id} is missing at the provider")
            else:
                ensured.append(pool)
        elif last is None or (ordered is not None and _has_bounds(there, ordered)):
            adopted.append(there)
        elif pool.max_replicas != last.max_replicas:
            ensured.append(pool)
        elif there != last:
            problems.append(_describe_drift(there, last, "applied"))
        elif ordered is not None:
            problems.append(_describe_drift(there, ordered, "ordered"))
            ensured += [ordered] if repeats_orders else []
    unknown = sorted(set(by_id) - {pool.id for pool in order.pools}) if order.pools else []
    problems += [f"pool {pool_id} was not made by the fleet manager" for pool_id in unknown]
    return SetupPlan(ensured=tuple(ensured), adopted=tuple(adopted), problems=tuple(problems))


def _has_bounds(pool: PoolBounds, ordered: PoolBounds) -> bool:
    return (pool.min_replicas, pool.max_replicas) == (ordered.min_replicas, ordered.max_replicas)


def get_max_nodes(pools: tuple[PoolBounds, ...]) -> dict[str, int]:
    """`max_nodes` by instance type, as the provider holds it."""
    return {pool.instance_type: pool.max_replicas for pool in pools}


def _build_wanted_pools(cluster: Cluster, policy: FleetPolicy) -> tuple[PoolBounds, ...]:
    """Only clusters that are scaled automatically have pools and bounds from us."""
    if policy.scaling_type is not ScalingType.AUTO or cluster.provider_type is ProviderType.STANDALONE:
        return ()
    pools = build_pools(cluster.cloud_provider, cluster.instance_types, policy, multi_az=cluster.multi_az)
    return tuple(_bound_pool(pool, cluster) for pool in pools)


def _bound_pool(pool: PoolBounds, cluster: Cluster) -> PoolBounds:
    """With the `max_nodes` of the row, if it has one."""
    capacity = cluster.dynamic_capacity_info.get(pool.instance_type, DynamicCapacity())
    if capacity.max_nodes <= 0:
        return pool
    most = round_replicas(capacity.max_nodes, multi_az=cluster.multi_az)
    return structs.replace(pool, max_replicas=most, min_replicas=min(pool.min_replicas, most))


def _build_resources(settings: SetupSettings) -> tuple[dict[str, Any], ...]:
    namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": AGENT_NAMESPACE}}
    if not settings.pull_secret:
        return (namespace,)
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": PULL_SECRET, "namespace": AGENT_NAMESPACE},
        "type": "kubernetes.io/dockerconfigjson",
        "stringData": {".dockerconfigjson": settings.pull_secret},
    }
    return namespace, secret


def _build_addons(cluster: Cluster, settings: SetupSettings) -> tuple[AddonOrder, ...]:
    logging = {"use-cloudwatch": "true", "use-app-logs": "true", "use-infra-logs": "false", "use-audit-logs": "false"}
    agent = {
        "sso-auth-server-url": settings.agent_issuer_url,
        "sso-client-id": cluster.client_id,
        "sso-secret": cluster.client_secret,
        "control-plane-url": settings.control_plane_url,
        "cluster-id": cluster.cluster_id,
        "poll-interval": settings.poll_interval,
        "resync-interval": settings.resync_interval,
    }
    return (
        AddonOrder(kind=AddonKind.KAFKA_OPERATOR),
        *((AddonOrder(kind=AddonKind.LOGGING, parameters=logging),) if settings.has_logging else ()),
        AddonOrder(kind=AddonKind.AGENT, parameters=agent),
    )


def _list_waits(cluster: Cluster, order: SetupOrder, held: ClusterSetup) -> tuple[str, ...]:
    states = {state.kind: state for state in held.addons}
    waits = [
        f"add-on {addon.kind}" + (f" ({state.details})" if (state := states.get(addon.kind)) and state.details else "")
        for addon in order.addons
        if (found := states.get(addon.kind)) is None or not found.is_ready
    ]
    return (*waits, *(() if held.dns or cluster.cluster_dns else ("the DNS name",)))


def _describe_drift(there: PoolBounds, last: PoolBounds, what: str) -> str:
    machines = "" if there.machine_type == last.machine_type else f" of {there.machine_type}"
    return (
        f"pool {there.id} has {there.min_replicas}..{there.max_replicas} nodes{machines} at the provider, "
        f"and {last.min_replicas}..{last.max_replicas} were {what}"
    )


def list_unconfigured(cluster: Cluster, policy: FleetPolicy) -> tuple[str, ...]:
    """Instance types of the cluster for which no pool is configured: it can never be set up."""
    if policy.scaling_type is not ScalingType.AUTO or cluster.provider_type is ProviderType.STANDALONE:
        return ()
    machines = policy.machines.get(cluster.cloud_provider)
    known = {} if machines is None else machines.per_type
    return tuple(name_pool(name) for name in cluster.instance_types if name not in known)
