"""Data types of the Kafka rebalancer. Pure: this package imports no other package of `kafka`."""
