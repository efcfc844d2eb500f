"""The fleet manager, put together: database, API, issuer and workers."""
