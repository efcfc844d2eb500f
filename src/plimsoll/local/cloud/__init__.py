"""A simulated cloud on any API server: machine types, node groups and machines as objects, with injected failures.

`api.SimulatedCloud` is the cloud's API, which a node autoscaler's provider calls; `controller.controllers` is the cloud
itself, which reconciles the objects. The two share only the objects.
"""
