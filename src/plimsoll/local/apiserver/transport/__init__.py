"""How requests reach the application: over TLS (`listening`), or without a socket (`in_process`).

    bytes → connections (HTTP/1.1, timeouts) → asgi (limits, hosts) → Application.handle → asgi → bytes

`certificates` and `kubeconfig` are what a client needs to believe us. Nothing here knows a resource, a verb or a
rule of Kubernetes beyond the texts of its own refusals.
"""
