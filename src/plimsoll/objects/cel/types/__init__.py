"""CEL types: declarations, signatures, unification and the type checker."""
