"""Speak Kubernetes: configuration and credentials, transports, client, watch, informer, work queue, lease, events."""
