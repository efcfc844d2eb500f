"""The virtual kubelet: simulates nodes and the pods on them against any API server, without running anything.

`node_status`, `containers`, `pod_conditions`, `pod_status` and `pod_patches` are pure: they compute what a kubelet
would write at a given moment. `nodes`, `pods` and `heartbeats` write it through a client. All state is in the objects.
"""

from plimsoll.local.kubelet.kubelet import Kubelet
from plimsoll.local.kubelet.settings import KubeletSettings

__all__ = ["Kubelet", "KubeletSettings"]
