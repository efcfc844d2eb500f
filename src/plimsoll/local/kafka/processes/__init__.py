"""Real Kafka on this machine: pods of Kafka clusters that are processes."""
