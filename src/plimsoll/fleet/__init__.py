"""The fleet manager: whole data-plane clusters per provider, region and instance type, and the Kafkas placed on them.

It creates clusters when a region runs short, places Kafka requests on them, keeps reserved room, and deletes clusters
that are no longer needed. State lives in database rows; every decision has a reason.
"""
