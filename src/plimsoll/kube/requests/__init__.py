"""One request to the API server: how it is built, limited, retried, paged, and what its errors mean."""
