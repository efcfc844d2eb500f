"""What a request carries and what its response needs: options, bodies, selectors and the request's context."""
