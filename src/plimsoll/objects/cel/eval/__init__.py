"""CEL evaluation: frames, closures, dispatch and comprehensions."""
