"""Places classes of pods on existing and new nodes under all scheduling constraints."""
