"""The kinds of Kubernetes together with the custom resources that Plimsoll defines."""

from __future__ import annotations

from typing import Final

from plimsoll.objects.api.kafka import KAFKA_RESOURCES
from plimsoll.objects.api.managed_kafkas import MANAGED_KAFKA_RESOURCES
from plimsoll.objects.api.provisioning_requests import REQUEST_RESOURCES
from plimsoll.objects.api.simulated_cloud import CLOUD_RESOURCES
from plimsoll.objects.api.tidb import TIDB_RESOURCES
from plimsoll.objects.registry import KINDS

OUR_KINDS: Final = KINDS.extend(
    (*CLOUD_RESOURCES, *KAFKA_RESOURCES, *MANAGED_KAFKA_RESOURCES, *REQUEST_RESOURCES, *TIDB_RESOURCES)
)
