"""Transports: how requests reach the application, over TLS (`listener`) or without a socket (`in_process`).

    bytes → connections (HTTP/1.1, timeouts) → asgi (limits, hosts) → Application.handle → asgi → bytes

`certificates` and `kubeconfig` let a client trust the server. Nothing here knows a resource, a verb or a rule of
Kubernetes beyond the texts of its own errors.
"""
