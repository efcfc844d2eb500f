"""The controllers of the Kafka operator, and what they need of the world."""
