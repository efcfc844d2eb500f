"""Typed slices of the Kubernetes API and of the custom resources, and the schemas that say what is valid."""
