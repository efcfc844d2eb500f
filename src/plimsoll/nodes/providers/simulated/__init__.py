"""The provider of the simulated cloud: groups and machines that are objects of an API server.

`SimulatedProvider(cloud)` serves the autoscaler's protocol from anything that is a `CloudPort`; in this program that is
`plimsoll.local.cloud.SimulatedCloud`, which works against any API server with our definitions and a running cloud
controller. The two are joined by their user: nothing here imports `local`.
"""

from plimsoll.nodes.providers.simulated.cloud_ports import CloudPort
from plimsoll.nodes.providers.simulated.provider import SimulatedProvider

__all__ = ["CloudPort", "SimulatedProvider"]
