"""ProvisioningRequests: capacity for groups of pods, all or nothing, or just checked (specs/nodes.md 2-4).

`desk` is the main flow: what a turn of the loop asks of this folder, in order. Reading, judging, booking and answering
are pure; only `writing` (the API server) and `rolling_back` (the cloud) change anything.
"""
