"""The provider of the simulated cloud: groups and machines that are objects of an API server.

`provider.SimulatedProvider(cloud)` implements the provider protocol on any `cloud_ports.CloudPort`; in
this program that is `plimsoll.local.cloud.api.SimulatedCloud`, which works against any API server with our
definitions and a running cloud controller. The caller connects the two: nothing here imports `local`.
"""
