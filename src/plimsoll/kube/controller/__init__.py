"""The controller loop: workqueue, reconciling, event handlers that enqueue, finalizers."""
