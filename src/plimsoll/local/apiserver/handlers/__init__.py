"""The HTTP handlers of the API server, one module per verb. Writes go through `registry`."""
