"""What workload controllers share: controller references, pod creation, revisions and readiness."""
