"""The analyzer: from a model of the cluster and a request to proposals. Pure."""
