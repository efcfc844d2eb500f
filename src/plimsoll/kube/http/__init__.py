"""Requests to an API server over the network: the `kube.transport.Transport` for real clusters.

`HttpTransport` is the public part. It carries a request to the server of `kube.access.Access` with its credentials, and
says in plain words what went wrong. It never retries (a refused credential is the one exception), never follows a
redirect, and does not interpret what it carries.
"""

from plimsoll.kube.http.transport import HttpLimits, HttpTransport

__all__ = ["HttpLimits", "HttpTransport"]
