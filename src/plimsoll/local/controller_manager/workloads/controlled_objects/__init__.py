"""The pods and revisions that a workload controls: references, creation, deletion order, readiness and status."""
