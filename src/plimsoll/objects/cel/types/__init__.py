"""CEL types: type values, signatures and unification."""
