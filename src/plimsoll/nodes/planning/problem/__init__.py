"""The scale-up problem and its solution as data: options, queue, placement, named pods, verification."""
