"""Admission: what may be written at all, and what the server adds to it, beyond the rules of the kind itself.

Handlers call `Admission.mutate` before they validate an object and `Admission.validate` after; each module beside this
one is one plugin of Kubernetes, `chain` holds their order. Plugins read the store and never write an object of the
request; the one thing written here is what a ResourceQuota says about its use.
"""

from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
from plimsoll.local.apiserver.admission.chain import Admission

__all__ = ["Admission", "AdmissionAttributes"]
