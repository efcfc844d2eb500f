"""Which API server to talk to and as whom: kubeconfig files, exec plugins, the service account of a pod.

Commands call `find_access`; the `Access` it gives is all that `kube.http` needs. Nothing here talks to a server.
"""

from plimsoll.kube.configuration.loader import AccessOptions, LoaderContext, choose_access, find_access

__all__ = ["AccessOptions", "LoaderContext", "choose_access", "find_access"]
