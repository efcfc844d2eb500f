"""The node lifecycle controller: node health, zone health and taint-based eviction."""
