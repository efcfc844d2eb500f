"""Cluster Autoscaler's provider protocol over gRPC: client, server, and an extension for creating node groups.

`client.ExternalGrpcProvider` is a provider that calls any server of the protocol; `service.ProviderService` serves any
of our providers to other clients. Both work on messages without a network, so they run in virtual time too. `channels`
and `server` connect them to sockets; only those two import grpc, and they are imported only when the protocol is used.
"""
