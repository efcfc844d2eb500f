"""CEL values: numbers, times, optionals, equality, and views of JSON by schema."""
