"""Whether controllers can work in a cluster: what `plimsoll doctor` tells, and what one may ask before it starts.

Everything found is a `Finding`, a value; only a server that cannot be reached raises (`NoExamination`). Nothing is
changed in the cluster, and no secret is read.
"""

from plimsoll.kube.diagnosis.examining import Scrutiny, examine
from plimsoll.kube.diagnosis.findings import Examination, Finding, Level, NoExamination
from plimsoll.kube.diagnosis.needs import CONTROLLERS, NEEDS, Definition, Needs
from plimsoll.kube.diagnosis.permissions import Permission, Places, Question, Scope
from plimsoll.kube.diagnosis.servers import Target

__all__ = [
    "CONTROLLERS",
    "NEEDS",
    "Definition",
    "Examination",
    "Finding",
    "Level",
    "Needs",
    "NoExamination",
    "Permission",
    "Places",
    "Question",
    "Scope",
    "Scrutiny",
    "Target",
    "examine",
]
