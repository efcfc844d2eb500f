"""Routes of administrators: Kafkas of all organisations, clusters, and decisions about scaling."""
