"""ConfigMaps that the reconcilers of Kafka write."""
