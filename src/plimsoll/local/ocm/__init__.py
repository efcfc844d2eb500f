"""The simulated OpenShift Cluster Manager: an HTTP API that creates and deletes clusters. They are behind a port."""
