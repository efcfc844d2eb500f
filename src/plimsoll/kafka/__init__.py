"""Kafka: which replicas move where, and how they are moved.

`model` holds data, `planning` decides (pure), `brokers` speaks to Kafka, `executor` moves replicas, `cruise_control`
speaks Cruise Control's REST API.
"""
