"""Kafka: where the port of the executor meets simulated brokers."""
