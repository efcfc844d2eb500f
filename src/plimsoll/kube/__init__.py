"""The Kubernetes client: configuration, credentials, transports, client, informers, work queue, leases, events."""
