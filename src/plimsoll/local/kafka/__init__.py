"""A simulated Kafka cluster in the time of a clock: brokers, partitions, replication, settings, faults.

`SimulatedKafka` (`cluster`) combines them. Its methods are the admin requests of Kafka, with Kafka's errors. It imports
nothing of `plimsoll.kafka`: `plimsoll.app.kafka` adapts it to the port of the executor. `simulated` makes pods of a
Kubernetes cluster its brokers.
"""
