"""Reviews: requests that are answered and not stored.

`review` handles the kinds of authorization.k8s.io and authentication.k8s.io, `token_requests` the token subresource of
a ServiceAccount; both raise `StatusError`. Responses have exactly the fields of a recorded 1.34 server, oddities
included: access reviews carry managedFields, and a rules review has an empty spec.
"""
