"""A simulated cloud on any API server: what it sells, node groups and machines as objects, and everything that fails.

`SimulatedCloud` is the cloud's interface, as a node autoscaler's provider calls it; `controllers(component)` is the
cloud itself, which makes the objects true. The two meet only in the objects (`plimsoll.objects.cloud`).
"""

from plimsoll.local.cloud.call_logs import CallLog, CallRecord
from plimsoll.local.cloud.controller import CloudController, CloudSettings, controllers
from plimsoll.local.cloud.interface import Instance, SimulatedCloud
from plimsoll.local.cloud.interventions import Interventions
from plimsoll.objects.cloud_errors import (
    CloudError,
    CloudFailed,
    CloudOutOfResources,
    CloudRefused,
    CloudTimedOut,
    NoSuchGroup,
    NotSupported,
)

__all__ = [
    "CallLog",
    "CallRecord",
    "CloudController",
    "CloudError",
    "CloudFailed",
    "CloudOutOfResources",
    "CloudRefused",
    "CloudSettings",
    "CloudTimedOut",
    "Instance",
    "Interventions",
    "NoSuchGroup",
    "NotSupported",
    "SimulatedCloud",
    "controllers",
]
