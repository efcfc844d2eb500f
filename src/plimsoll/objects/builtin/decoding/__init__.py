"""Strict decoding of built-in kinds against the OpenAPI schemas, with the errors of a real API server."""
