"""A simulated cloud on any API server: what it sells, node groups and machines as objects, and everything that fails.

`interface.SimulatedCloud` is the cloud's interface, as a node autoscaler's provider calls it; `controller.controllers`
is the cloud itself, which makes the objects true. The two meet only in the objects
(`plimsoll.objects.api.simulated_cloud`). Nothing is imported here: a plan that is made from a file needs `node_bodies`
and no controller.
"""
