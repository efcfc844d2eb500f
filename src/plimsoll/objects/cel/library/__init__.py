"""CEL function libraries: operators, strings, lists, conversions, Kubernetes extensions."""
