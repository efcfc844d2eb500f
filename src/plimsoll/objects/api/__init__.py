"""Wire types of the Kubernetes API, one module per API group or family."""
