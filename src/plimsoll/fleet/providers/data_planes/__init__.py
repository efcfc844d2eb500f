"""Access to the Kubernetes API of data-plane clusters, for providers without an installer of their own.

They apply objects and the manifests of add-ons there, and read what a cluster has of them.
"""
