"""CEL evaluation: values, dispatch, comprehensions and equality."""
