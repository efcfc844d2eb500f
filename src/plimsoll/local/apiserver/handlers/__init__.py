"""What the API server does with a request, one module a verb; `writing` is the guarded write behind most of them."""
