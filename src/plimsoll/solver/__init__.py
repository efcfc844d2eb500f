"""Pure numbers in, numbers out: packing, knapsacks, column generation, partition placement. Empty so far."""
