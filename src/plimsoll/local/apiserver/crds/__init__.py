"""CustomResourceDefinitions: accepted names, the lifecycle of a definition, and serving its objects."""
