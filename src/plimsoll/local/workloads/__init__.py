"""Workload controllers: what kube-controller-manager does about replica sets, deployments, stateful sets….

Decisions are in pure modules (`*_plans`, `*_conditions`, `deletion_order`, …), the controllers around them observe from
shared informers, act through the client and tell by status and events. What they share: `pod_making` (pods from
templates, with their events), `own_writes` (what the caches do not show yet), `adoption` (whose is an object),
`pod_readiness`, `deletion_order`, `template_hashes`.
"""
