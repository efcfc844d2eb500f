"""Admission: which writes are allowed, and what the server adds to them, beyond the rules of the kind itself.

Handlers call `Admission.mutate` before they validate an object and `Admission.validate` after. Each module is one
plugin of Kubernetes; `chain` holds their order. Plugins read the store and never write an object of the request; the
only write is the usage in a ResourceQuota's status.
"""

from plimsoll.local.apiserver.admission.attributes import AdmissionAttributes
from plimsoll.local.apiserver.admission.chain import Admission

__all__ = ["Admission", "AdmissionAttributes"]
