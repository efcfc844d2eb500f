"""The programs: `up` is everything on one machine, the others run an autoscaler against any cluster.

Only this package knows the concrete parts of every subsystem.
"""
