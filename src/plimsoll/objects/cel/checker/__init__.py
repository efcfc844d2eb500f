"""The CEL type checker, and checks of literals."""
