"""Checks whether controllers can work in a cluster.

Every result is a `Finding`, a value; only a server that cannot be reached raises (`NoExamination`). Nothing is changed
in the cluster, and no Secret is read. What each controller needs (`Requirements`) comes from its subsystem.
"""

from plimsoll.kube.diagnosis.checks import ExaminationOptions, examine
from plimsoll.kube.diagnosis.findings import Examination, Finding, Level, NoExamination
from plimsoll.kube.diagnosis.permissions import AccessQuestion, Namespaces, Permission, Scope
from plimsoll.kube.diagnosis.requirements import CustomResource, Requirements
from plimsoll.kube.diagnosis.servers import Target

__all__ = [
    "AccessQuestion",
    "CustomResource",
    "Examination",
    "ExaminationOptions",
    "Finding",
    "Level",
    "Namespaces",
    "NoExamination",
    "Permission",
    "Requirements",
    "Scope",
    "Target",
    "examine",
]
