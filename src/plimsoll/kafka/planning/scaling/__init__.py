"""What a Kafka cluster does when it scales: node ids, automatic rebalancing, the life cycle of a rebalance. Pure."""
