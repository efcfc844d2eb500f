"""Decoding and encoding of objects: JSON, YAML, manifests, and problems found on the way."""
