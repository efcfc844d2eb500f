"""The permissions and custom resources that the Kafka operator needs, and what else `plimsoll doctor` looks at."""

from __future__ import annotations

from typing import Final

from plimsoll.kafka.diagnosis import (
    CRUISE_CONTROLS_CHECK,
    RIVALS_CHECK,
    check_cruise_controls,
    check_kafka_rivals,
)
from plimsoll.kafka.settings import LAST_PLANS_MAP, LEASE
from plimsoll.kube.diagnosis.permissions import Scope
from plimsoll.kube.diagnosis.requirements import (
    FROM_PLIMSOLL,
    READ,
    CustomResource,
    Requirements,
    RivalCheck,
    declare_config_map_permissions,
    declare_event_permission,
    declare_lease_permissions,
    declare_permissions,
)
from plimsoll.objects.api.kafka import KAFKA_GROUP, POD_SET_GROUP

FROM_STRIMZI: Final = "Strimzi"


def declare_strimzi(plural: str, *, group: str = KAFKA_GROUP) -> CustomResource:
    return CustomResource(plural=plural, group=group, versions=("v1", "v1beta2"), source=FROM_STRIMZI)


KAFKA: Final = Requirements(
    controller="kafka",
    permissions=(
        *declare_permissions(
            KAFKA_GROUP,
            ("kafkas", READ, "to read the specified clusters"),
            ("kafkas/status", ("patch",), "to report the state of a cluster and its rebalancing"),
            ("kafkanodepools", READ, "to read the specified number of brokers"),
            ("kafkanodepools", ("patch",), "to hold a deleted pool until its brokers are empty"),
            ("kafkanodepools/status", ("patch",), "to report the node ids of a pool"),
            (
                "kafkarebalances",
                (*READ, "create", "patch", "delete"),
                "to rebalance when brokers are added or removed",
            ),
            ("kafkarebalances/status", ("patch",), "to report the state of a rebalance"),
            ("kafkarebalancesettings", ("get",), "to read the settings of automatic rebalances"),
            scope=Scope.WATCHED,
        ),
        *declare_permissions(
            POD_SET_GROUP,
            ("strimzipodsets", (*READ, "create", "patch", "delete"), "to specify the broker pods"),
            ("strimzipodsets/status", ("patch",), "to report the running broker pods"),
            ("strimzipodsets/finalizers", ("update",), "to own the pods of a pod set"),
            scope=Scope.WATCHED,
        ),
        *declare_permissions(
            "",
            ("pods", (*READ, "create", "patch", "delete"), "to run the pods of its pod sets"),
            (
                "configmaps",
                ("get", "create", "patch", "delete"),
                "to publish proposals and progress of a rebalance, and to keep the record of its execution",
            ),
            scope=Scope.WATCHED,
        ),
        *declare_permissions(
            "",
            ("secrets", ("get",), "to read certificates of brokers, and password and certificate of Cruise Control"),
            scope=Scope.WITH_OBJECTS,
        ),
        *declare_permissions(
            "apps", ("deployments", ("list",), "to find out whether Strimzi's operator runs"), scope=Scope.WATCHED
        ),
        *declare_config_map_permissions(LAST_PLANS_MAP),
        *declare_lease_permissions(LEASE),
        declare_event_permission(Scope.WATCHED),
    ),
    custom_resources=(
        declare_strimzi("kafkas"),
        declare_strimzi("kafkanodepools"),
        declare_strimzi("kafkarebalances"),
        CustomResource(
            plural="kafkarebalancesettings",
            group=KAFKA_GROUP,
            versions=("v1", "v1beta2"),
            source=FROM_PLIMSOLL,
            is_optional=True,
        ),
        declare_strimzi("strimzipodsets", group=POD_SET_GROUP),
    ),
    rivals=(
        RivalCheck(name=RIVALS_CHECK, find=check_kafka_rivals),
        RivalCheck(name=CRUISE_CONTROLS_CHECK, find=check_cruise_controls),
    ),
)
