"""Kafka in scenarios: topics of simulated clusters, the controllers of their pods, and the brokers in the outcome."""
