"""The agent of a cluster: it runs what the fleet manager places here, and reports (docs/design/fleet.md 17).

It polls its control plane, keeps the answer as ManagedKafka objects, makes Kafka objects and reserved pods of them, and
reports what became of them. It meets the Kafka operator, the scheduler and the node autoscaler in objects only.
"""
