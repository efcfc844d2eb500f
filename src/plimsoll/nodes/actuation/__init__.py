"""Changes to nodes and node groups: taints, drain, deletion, cleanup after a crash.

Each actuator checks its precondition immediately before it acts and is idempotent, so a crash between two calls is
harmless.
"""
