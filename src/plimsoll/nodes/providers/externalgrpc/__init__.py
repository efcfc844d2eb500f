"""Cluster Autoscaler's provider protocol over gRPC, both ends of it, and our extension of it.

`client.ExternalGrpcProvider` makes any server of the protocol a provider of ours; `service.ProviderService` answers it
for any provider of ours. Both work on messages and know no network, so they run in virtual time too; `channels` and
`listening` join them to sockets, and are the only modules that import grpc. Nothing imports this package but who uses
the protocol.
"""
