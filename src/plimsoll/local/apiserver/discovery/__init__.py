"""Discovery: versions, groups, resources, OpenAPI, health.

`handle_discovery` is the entry point. Documents follow the registry: a new definition is listed with the next request.
There is no OpenAPI v2; a client that asks for it gets 404 and uses v3.
"""

from plimsoll.local.apiserver.discovery.handler import handle_discovery

__all__ = ["handle_discovery"]
