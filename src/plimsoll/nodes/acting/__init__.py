"""Carries out what turns decide: groups grown, made and deleted, nodes tainted, drained and removed.

One actuator for each kind of action. Each checks its precondition just before it acts, and doing it twice does no more
than doing it once, so that a crash between two calls is harmless.
"""
