"""What a structural schema does to an object: defaulting, pruning and validation."""
