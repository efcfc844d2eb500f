"""The provider of the simulated cloud: groups and machines that are objects of an API server.

`provider.SimulatedProvider(cloud)` serves the autoscaler's protocol from anything that is a `cloud_ports.CloudPort`; in
this program that is `plimsoll.local.cloud.api.SimulatedCloud`, which works against any API server with our
definitions and a running cloud controller. The two are joined by their user: nothing here imports `local`.
"""
