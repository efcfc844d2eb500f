"""The brokers of a Kafka cluster: the port that the rest uses, and its implementation over Kafka's own protocol."""
