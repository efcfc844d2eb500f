"""States and errors of cloud instances, with the numbers of Cluster Autoscaler's wire protocol."""

from __future__ import annotations

from enum import IntEnum


class InstanceState(IntEnum):
    """The phase of an instance's life. 0: the provider does not say."""

    UNSPECIFIED = 0
    RUNNING = 1
    CREATING = 2
    DELETING = 3


class ErrorClass(IntEnum):
    """The class of an instance error: the cloud has no capacity or quota left, or anything else."""

    OUT_OF_RESOURCES = 1
    OTHER = 99

    def __str__(self) -> str:
        return "OutOfResource" if self is ErrorClass.OUT_OF_RESOURCES else "Other"
