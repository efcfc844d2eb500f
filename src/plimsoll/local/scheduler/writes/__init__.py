"""What the scheduler writes: bindings, pod status and claims."""
