"""The cache of an informer: objects by key, indexes, and keys that changed."""
