"""Calls to an API server over the network: the `kube.exchange.Transport` that real clusters are reached with.

`HttpTransport` is all that others use. It carries one call at a time to where `kube.access.Access` says, as whom it
says, and tells in plain words what went wrong. It never retries (a refused credential is the one exception), never
follows a redirect, and understands nothing of what it carries.
"""

from plimsoll.kube.http.transport import HttpLimits, HttpTransport

__all__ = ["HttpLimits", "HttpTransport"]
