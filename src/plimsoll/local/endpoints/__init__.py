"""Which pods are behind a Service: EndpointSlices, and the older Endpoints.

Entry point: `plimsoll.local.endpoints.services.endpoint_services`.
"""
